"""A hover: a value of the frame that an editor shows and, beside it, that of the other ranks.

The others are those that are stopped in the same function, each in its innermost frame of it. They
are asked for lookups only and have 300 ms, because code of the user may run there: a `__repr__`.
"""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from dap_mux.engine.debug_console.merged_values import Values
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.values.fan_out import FanOutEvaluator
from dap_mux.engine.values.inspect import Inspector
from dap_mux.engine.values.meshes import Meshes
from dap_mux.engine.values.replies import Answers
from dap_mux.pure.errors import StaleHandle
from dap_mux.pure.insight.compare import Tolerance
from dap_mux.pure.protocol.arguments import EvaluateArguments
from dap_mux.pure.protocol.exchange import Kind
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_values import is_lookup_text
from dap_mux.pure.remote.probes import summarised

# One expression in a set of ranks, answered as the one value that a debug console shows.


class RankSetEvaluator(Struct, eq=False):
    """The engine's part that evaluates in several ranks for `evaluate` and `%compare`."""

    _core: SessionState
    _fan_out: FanOutEvaluator
    _meshes: Meshes
    _values: Values

    def evaluate(
        self,
        request: ClientRequest,
        ranks: str,
        expression: str,
        tolerance: Tolerance | None = None,
        depth: int | None = None,
    ) -> None:
        """Evaluate in these ranks, and answer the request with one value for all of them."""

        def answered(answers: Answers) -> None:
            to_clients.respond(self._core, request, self._values.body(answers, tolerance))

        def chosen(found: list[Rank]) -> None:
            text = summarised(self._core.injected["tensor_summary"], expression)
            self._fan_out.evaluate(found, text, answered, depth=depth)

        self._meshes.choose(request, ranks, chosen)


HOVER: Final = "hover"
OTHERS_TIMEOUT_S: Final = 0.3
Function: TypeAlias = "tuple[str, str]"
"""The path that clients know its file by, and its name."""


class _Pointed(NamedTuple):
    """The frame's rank, and the ranks that are stopped in its function, itself among them."""

    rank: Rank
    function: Function
    ranks: list[Rank]


class HoverEvaluator(Struct, eq=False):
    """The engine's part that answers `evaluate` with the context `hover`."""

    _core: SessionState
    _inspector: Inspector
    _fan_out: FanOutEvaluator
    _values: Values

    def evaluate(self, request: ClientRequest, arguments: EvaluateArguments) -> None:
        """Answer for all ranks in the frame's function, or for the frame's rank alone."""
        pointed = self._pointed_at(arguments) if is_lookup_text(arguments.expression) else None
        if pointed is None or len(pointed.ranks) == 1:
            self._inspector.to_owner_or_focus(request)
        else:
            self._beside(request, arguments.expression, pointed)

    def _pointed_at(self, arguments: EvaluateArguments) -> _Pointed | None:
        """Return None for a worker, which is in no rank set, and for a frame that is stale."""
        try:
            id, upstream_id = self._core.handles.resolve(Kind.FRAME, arguments.frameId or 0)
        except StaleHandle:
            return None
        rank = self._core.ranks[id]
        if rank.main is not None or rank.stop is None or upstream_id not in rank.stop.frame_ids:
            return None
        frame = (rank.stop.frames or ())[rank.stop.frame_ids.index(upstream_id)]
        function = frame.path, frame.name
        mains = self._core.sorted_mains()
        beside = [one for one in mains if one is rank or _frame_of(function, one.stop) is not None]
        return _Pointed(rank, function, beside)

    def _beside(self, request: ClientRequest, expression: str, pointed: _Pointed) -> None:
        own: list[Body] = []
        everywhere: list[Answers] = []
        problems: list[str] = []

        def finish(_: frozenset[str]) -> None:
            if own:
                body = self._values.beside(pointed.rank.rank_id, own[0], everywhere[0])
                to_clients.respond(self._core, request, body)
            else:
                to_clients.pass_failure(self._core, request, problems[0])

        join = Join(self._core, ("own", "everywhere"), finish)

        def answered(body: Body, problem: str) -> None:
            if problem:
                problems.append(problem)
            else:
                own.append(body)
            join.arrive("own")

        def told(answers: Answers) -> None:
            everywhere.append(answers)
            join.arrive("everywhere")

        inner = ClientRequest(
            request.client, request.seq, request.command, request.arguments, reply=answered
        )
        self._inspector.to_owner(inner)
        text = summarised(self._core.injected["tensor_summary"], expression)
        depth = partial(_frame_of, pointed.function)
        self._fan_out.evaluate(pointed.ranks, text, told, OTHERS_TIMEOUT_S, depth=depth)


def _frame_of(function: Function, stop: Stop | None) -> int | None:
    """Return the index of the innermost frame of a function, None where there is none."""
    frames = enumerate(stop.frames or ()) if stop else ()
    return next((at for at, one in frames if (one.path, one.name) == function), None)
