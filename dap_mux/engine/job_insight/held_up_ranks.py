"""Looks whether ranks that were let run wait for others that stand; stops none of them."""

from __future__ import annotations

from typing import Final

from dap_mux.engine.job_insight.gather_evidence import EvidenceGatherer
from dap_mux.engine.job_insight.partial_moves import OnFound
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.insight.why.evidence import Evidence
from dap_mux.insight.why.held_up import Standing, held_up

SAMPLES: Final = 2
INTERVAL_S: Final = 0.3


class HeldUpRanks:
    """The engine's part that knows who waits for ranks that stand."""

    def __init__(self, core: SessionState, evidence: EvidenceGatherer) -> None:
        self._core = core
        self._evidence = evidence

    def look(self, run: list[Rank], stand: list[Rank], then: OnFound) -> None:
        """Take samples of every rank, because any of them may keep the others waiting."""
        live = [rank for rank in self._core.sorted_mains() if rank.phase.live]
        asked = {rank.rank_id for rank in run}
        places = {rank.rank_id: _place(rank) for rank in stand}

        def told(evidence: Evidence) -> None:
            then([*held_up(evidence, asked, places, self._core.default_group())])

        self._evidence.gather(live, SAMPLES, INTERVAL_S, told)


def _place(rank: Rank) -> Standing:
    stop = rank.stop
    if stop is None or not stop.frames:
        return Standing("", ends=bool(stop and stop.unhandled))
    frame = stop.frames[stop.own]
    name = frame.path.replace("\\", "/").rsplit("/", 1)[-1]
    return Standing(f"{name}:{frame.line}", ends=stop.unhandled)
