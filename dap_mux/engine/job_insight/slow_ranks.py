"""Looks for the rank that makes the others wait, for `why --slow`; no rank is stopped."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from msgspec import Struct

from dap_mux.engine.job_insight.gather_evidence import InForm, ask_evidence
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Result
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.pure.insight.numerics.pace import Pace
from dap_mux.pure.insight.numerics.slow import judge
from dap_mux.pure.insight.why.verdict import answer
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.world import DebuggeeId

PACE: Final = "own['module'](own['sent'],'pace')"
BEGIN: Final = f"'{{\"begun\":%s}}' % {PACE}.begin(own['module'],own['sent'])"
TOLD: Final = f"'{{\"pace\":%s}}' % {PACE}.told(own['plain'])"
LOOKS_S: Final = (4.5, 4.5, 12.0)
"""After which it is asked what they have seen: a look of few collectives goes on for longer."""


class PaceAnswer(InForm, frozen=True):
    """What a rank has seen; empty while its look is under way."""

    pace: Pace | None = None


@dataclass
class _PaceLook:
    """One look at some ranks under way; `absent`: why others tell nothing."""

    request: Final[ClientRequest]
    paces: dict[RankId, Pace] = field(default_factory=dict)
    absent: dict[RankId, str] = field(default_factory=dict)
    asked: int = 0


class SlowRanks(Struct, eq=False):
    """The engine's part that answers `why` where it is asked who is slow."""

    _core: SessionState

    def look(self, request: ClientRequest, ranks: list[Rank]) -> None:
        """Have each rank watch itself for some seconds, and answer by what all have seen."""
        look = _PaceLook(request)
        for rank in ranks:
            if not rank.phase.live:
                look.absent[rank.rank_id] = rank.absence
            elif rank.main is None and rank.stopped:
                look.absent[rank.rank_id] = "is stopped in the debugger"
        self._ask(look, [rank for rank in ranks if rank.phase.live and rank.main is None], BEGIN)

    def _wait(self, look: _PaceLook, ranks: list[Rank]) -> None:
        if not ranks or look.asked == len(LOOKS_S):
            look.absent.update({rank.rank_id: "still looks" for rank in ranks})
            self._answer(look)
            return
        self._core.after(LOOKS_S[look.asked], lambda: self._ask(look, ranks, TOLD))
        look.asked += 1

    def _ask(self, look: _PaceLook, ranks: list[Rank], value: str) -> None:
        """Ask them for what they have seen, and wait for those that still look."""

        def told(results: dict[DebuggeeId, Result[PaceAnswer]]) -> None:
            left = []
            for rank in live:
                answer, reply = results[rank.id]
                if answer is None:
                    look.absent[rank.rank_id] = reply.problem
                elif answer.pace is None:
                    left.append(rank)
                else:
                    look.paces[rank.rank_id] = answer.pace
            self._wait(look, left)

        live = [rank for rank in ranks if rank.phase.live]
        look.absent.update({rank.rank_id: rank.absence for rank in ranks if not rank.phase.live})
        ask_evidence(self._core, live, value, PaceAnswer, told)

    def _answer(self, look: _PaceLook) -> None:
        label = partial(named, self._core)
        verdict, numbers = judge(look.paces)
        body = answer(verdict, label)
        body["evidence"] += [f"rank {label([rank])} {why}" for rank, why in look.absent.items()]
        if numbers:
            body["slow"] = numbers
        to_clients.respond(self._core, look.request, body)
