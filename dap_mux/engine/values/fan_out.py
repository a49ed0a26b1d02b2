"""One expression to a set of ranks, and their answers, by a time; `compare`, which groups them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct, field

from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.handles import Recent
from dap_mux.engine.state.rank import Rank, Stop
from dap_mux.engine.state.selection import focused
from dap_mux.engine.state.session import Broadcast, SessionState
from dap_mux.engine.state.threads import named, values_of
from dap_mux.engine.stops.control import StopWaiters
from dap_mux.engine.values.meshes import Meshes
from dap_mux.engine.values.replies import Answers, OnAnswers, ReplyCollector
from dap_mux.pure.insight.compare import Comparison, by_message, compare
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.types import EXACT, CompareArguments, Tolerance
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import substitute
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import MAX_PARSED_CHARS, call, is_expression, summarised

TIMEOUT: Final = 5.0  # s
RAW: Final[Body] = {"format": {"rawString": True}}
"""Ask for a text as it is; otherwise debugpy gives its repr."""

# Our own code around a user's expression is parsed with it.
_MAX_PARSED_CHARS: Final = 4 * MAX_PARSED_CHARS
# The expression for a running rank. Without a frame only text comes back, so the type precedes it;
# longer values are cut where debugpy cuts those of a frame.
_IN_MAIN: Final = (
    "(lambda value: type(value).__name__ + '\\n' + repr(value)[:65536])"
    "(eval({!r}, __import__('sys').modules['__main__'].__dict__))"
)


Text: TypeAlias = "str | Callable[[Rank], str]"
Depth: TypeAlias = "int | Callable[[Stop], int | None]"


# A stopped rank evaluates in its selected frame; a running one without a frame, in the globals of
# its `__main__` (debugpy allows that even while it is blocked in C), and where these lack a name,
# in the function that its main thread is in. Nobody waits for a silent rank longer than asked for:
# who has not answered by then is `missing`.
class FanOutEvaluator(Struct, eq=False):
    """The engine's part that evaluates in many ranks."""

    _core: SessionState
    _stop_waiters: StopWaiters

    def evaluate(
        self,
        ranks: Iterable[Rank],
        text: Text,
        then: OnAnswers,
        timeout: float = TIMEOUT,
        *,
        raw: bool = False,
        stopped_only: str = "",
        depth: Depth | None = None,
    ) -> None:
        """Evaluate in each rank; `then` is called once, within `timeout` seconds.

        `text`: an expression or statement, `$rank` and its like replaced; a callable gives each
        rank its own. `raw`: a text comes as it is, not as its repr. `stopped_only`: why this cannot
        be asked of a running rank, '' where it can. `depth`: in the frame so far up the stack, 0
        for the innermost; a callable says it for each stop; None for the selected one.
        """
        asked = list(ranks)
        request = _EncodedRequest(self._core, text, raw=raw, stopped_only=stopped_only, depth=depth)
        ids = [rank.rank_id for rank in asked]
        collector = ReplyCollector(self._core, ids, then, timeout, request.put_in_frames)
        for rank in asked:
            if rank.stop is not None and not rank.stop.settled:
                self._stop_waiters.wait(rank, partial(request.put, collector))
            else:
                request.put(collector, rank)


# A broadcast to many ranks is one timer, and one encoding for each distinct request.
class _EncodedRequest:
    """One `evaluate`, encoded once for all ranks that get it with the same arguments."""

    def __init__(
        self, core: SessionState, text: Text, *, raw: bool, stopped_only: str, depth: Depth | None
    ) -> None:
        self._core = core
        self._depth = depth
        self._text = text
        self._stopped_only = stopped_only
        self._message = cache(partial(_message, RAW if raw else {}))
        self._in_frames = cache(partial(_in_frames, core.injected["waiting_frames"]))

    def put(self, collector: ReplyCollector, rank: Rank) -> None:
        """Ask one rank, or say why that cannot be. Lean: this is done a thousand times at once."""
        stop, connection, id = rank.stop, rank.connection, rank.rank_id
        frame = None
        if stop:
            frame = stop.frame_id if self._depth is None else self._frame(stop, self._depth)
        problem = "" if frame is not None else self._problem(rank, stop)
        if problem or connection.link is None or not rank.phase.live:
            collector.fail(id, problem or rank.absence)
            return
        if stop:
            collector.stops[rank] = stop
        else:
            collector.in_main.add(id)
        message = self._message(self._text_for(rank), frame)
        self._core.send_shared(message, connection, collector.pending)

    def put_in_frames(self, collector: ReplyCollector, rank: Rank) -> None:
        """Ask a running rank in the function that its main thread is in."""
        if rank.connection.link is None:
            collector.fail(rank.rank_id, rank.absence)
            return
        message = self._in_frames(self._text_for(rank))
        self._core.send_shared(message, rank.connection, collector.pending)

    def _problem(self, rank: Rank, stop: Stop | None) -> str:
        """Return why a rank that has no frame to ask in is not asked at all."""
        if not rank.phase.live:
            return rank.absence
        if stop is None:
            return self._stopped_only
        if stop.frame_ids and isinstance(self._depth, int):
            return f"it has no frame {self._depth}: its stack is {len(stop.frame_ids)} deep"
        if stop.frame_ids:
            return "it has left this function"
        return "its stack is not known: pause it again"

    def _frame(self, stop: Stop, depth: Depth) -> int | None:
        index = depth(stop) if callable(depth) else depth
        if index is None or index >= len(stop.frame_ids):
            return None
        return stop.frame_ids[index]

    def _text_for(self, rank: Rank) -> str:
        text = self._text if isinstance(self._text, str) else self._text(rank)
        return substitute(text, values_of(self._core, rank)) if "$" in text else text


def _message(more: Body, text: str, frame: int | None) -> Broadcast:
    if frame is None:
        return Broadcast("evaluate", {"expression": _IN_MAIN.format(text)})
    context = "watch" if is_expression(text, _MAX_PARSED_CHARS) else "repl"
    arguments: Body = {"expression": text, "frameId": frame, "context": context, **more}
    return Broadcast("evaluate", arguments)


def _in_frames(source: str, text: str) -> Broadcast:
    expression = call(source, "value_in_frame", repr(text))
    return Broadcast("evaluate", {"expression": expression, "context": "watch"})


# `compare`: one expression in many ranks; equal values together, outliers named.

MAX_WATCHED: Final = 64  # expressions whose values at the last stops are kept
MAX_PAST: Final = 50  # stops
MAX_PAST_CHARS: Final = 200  # of each value


class _Past(Struct, eq=False):
    """An expression at the last stops; `stops`: those of the ranks that were asked last."""

    stops: dict[DebuggeeId, Stop]
    entries: deque[Body] = field(default_factory=lambda: deque(maxlen=MAX_PAST))


class Compare(Struct, eq=False):
    """The engine's part that answers `compare`."""

    _core: SessionState
    _fan_out: FanOutEvaluator
    _meshes: Meshes
    _past: Recent[tuple[str, str], _Past] = field(default_factory=lambda: Recent(MAX_WATCHED))

    def compare(self, request: ClientRequest) -> None:
        """`compare`: tensors and arrays are summarised in the rank."""
        arguments = typed(request.arguments, CompareArguments)
        said = arguments.tolerance
        tolerance = said if isinstance(said, Tolerance) else Tolerance(said)

        def answered(ranks: list[Rank], answers: Answers) -> None:
            body = body_of(self._core, answers, tolerance)
            if arguments.history:
                key = arguments.expression, arguments.ranks
                body["history"] = self._kept(key, ranks, self._entry(request, answers, body))
            to_clients.respond(self._core, request, body)

        def chosen(ranks: list[Rank]) -> None:
            then = partial(answered, ranks)
            text = summarised(self._core.injected["tensor_summary"], arguments.expression)
            self._fan_out.evaluate(ranks, text, then, arguments.timeout, depth=arguments.frame)

        self._meshes.choose(request, arguments.ranks, chosen)

    def _entry(self, request: ClientRequest, answers: Answers, body: Body) -> Body:
        """Return this stop: the value of the rank in focus, or else the commonest."""
        rank = focused(self._core, request.client)
        own = answers.values.get(rank.rank_id) if rank else None
        values = [own.value] if own else [one["value"] for one in body["values"]]
        return {"value": (values or [""])[0][:MAX_PAST_CHARS], "outliers": body["outliers"]}

    def _kept(self, key: tuple[str, str], ranks: list[Rank], entry: Body) -> list[Body]:
        """Return the last stops, this one among them: anew where no rank has moved on since."""
        past = self._past.get(key)
        if past is None:
            past = self._past[key] = _Past({})
        known = self._core.ranks
        same = (id in known and known[id].stop is stop for id, stop in past.stops.items())
        if past.entries and all(same):
            past.entries.pop()
        past.entries.append(entry)
        past.stops = {rank.id: rank.stop for rank in ranks if rank.stop}
        return [*past.entries]


def comparison_of(answers: Answers, tolerance: Tolerance = EXACT) -> Comparison:
    """Compare what ranks have said."""
    return compare({rank: answer.value for rank, answer in answers.values.items()}, tolerance)


def body_of(core: SessionState, answers: Answers, tolerance: Tolerance) -> Body:
    """Return the body of `compare`; every key is always there."""
    found = comparison_of(answers, tolerance)
    return {
        "values": [
            {"ranks": named(core, one.ranks), "value": one.value, "outlier": one.outlier}
            for one in found.groups
        ],
        "statistics": msgspec.to_builtins(found.statistics),
        "outliers": named(core, found.outliers),
        "errors": by_message(answers.errors, partial(named, core)),
        "missing": named(core, answers.missing),
    }
