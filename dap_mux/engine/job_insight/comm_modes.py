"""`comm`: what ranks look at of their communication, asked and changed while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.values.meshes import Meshes
from dap_mux.pure.insight.compare import by_message, most_first
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.types import CommArguments
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import switch_comm


class CommTold(Struct):
    """A rank's answer: its mode, and what has kept it from another one, "" for nothing."""

    mode: Annotated[str, Meta(max_length=64)] = ""
    problem: Annotated[str, Meta(max_length=1024)] = ""


Results: TypeAlias = "dict[DebuggeeId, Result[CommTold]]"
Then: TypeAlias = Callable[[Results], None]


class CommModes(Struct, eq=False):
    """The engine's part that answers `comm`, and brings a client's `comm` to ranks."""

    _core: SessionState
    _meshes: Meshes

    def comm(self, request: ClientRequest) -> None:
        """`comm`: begin a mode in these ranks, or ask them for it; no rank is stopped for it."""
        arguments = typed(request.arguments, CommArguments)
        answer = partial(self._answer, request)
        self._meshes.choose(
            request, arguments.ranks, lambda ranks: self._ask(ranks, arguments.mode, answer)
        )

    def live(self, rank: Rank) -> None:
        """Begin the mode that the first controller has asked for in a rank that comes."""
        if self._core.comm and rank.main is None:
            self._ask([rank], self._core.comm, self._report)

    def _ask(self, ranks: list[Rank], mode: str, then: Then) -> None:
        expression = switch_comm(self._core.injected["comm_switch"], mode)
        gather_results(self._core, ranks, lambda _: expression, CommTold, then)

    def _answer(self, request: ClientRequest, results: Results) -> None:
        told, problems = self._told(results)
        body = {
            "modes": [
                {"ranks": named(self._core, ranks), "mode": mode}
                for mode, ranks in most_first(told)
            ],
            "errors": self._errors(problems),
        }
        to_clients.respond(self._core, request, body)

    def _report(self, results: Results) -> None:
        for error in self._errors(self._told(results)[1]):
            text = f"rank {error['ranks']} does not watch its calls: {error['message']}"
            to_clients.say(self._core, text, "important")

    def _told(self, results: Results) -> tuple[dict[RankId, str], dict[RankId, str]]:
        """Return the modes of ranks, and what has kept others from theirs."""
        modes, problems = {}, {}
        for id, (said, reply) in results.items():
            rank = self._core.ranks.get(id)
            problem = reply.problem if said is None else said.problem
            if rank is not None and problem:
                problems[rank.rank_id] = problem
            elif rank is not None and said is not None:
                modes[rank.rank_id] = said.mode
        return modes, problems

    def _errors(self, problems: Mapping[RankId, str]) -> list[Body]:
        return by_message(problems, partial(named, self._core))
