"""What several ranks answered, as the one value that a watch or a debug console shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.handles import Recent
from dap_mux.engine.state.rank import Rank, Stop
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.values.fan_out import FanOutEvaluator, comparison_of
from dap_mux.engine.values.inspect import Inspector, frame_of
from dap_mux.engine.values.meshes import Meshes
from dap_mux.engine.values.replies import Answers, handle_of
from dap_mux.pure.errors import StaleHandle
from dap_mux.pure.insight.compare import (
    Group,
    Statistics,
    compare,
    most_first,
    sparkline,
)
from dap_mux.pure.protocol.arguments import EvaluateArguments
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.types import EXACT, Tolerance
from dap_mux.pure.rank_sets import RankId, parse
from dap_mux.pure.rank_values import (
    SEPARATOR,
    WARNING,
    RankValue,
    is_lookup_text,
    marked,
    side_by_side,
)
from dap_mux.pure.remote import summarised

# Values of several ranks as one tree: a `variablesReference` of our own for its top.
#
# A child stands for ranks that say the same; below it are variables of one of those ranks, by that
# rank's own handles. A tree is of one stop of its ranks: it dies when any of them runs on.

MAX_TREES: Final = 1024  # trees that are kept: of running ranks none ever dies


class _Tree(NamedTuple):
    children: tuple[Body, ...]
    stops: tuple[tuple[Rank, Stop], ...]

    def gone(self) -> Rank | None:
        """Return a rank that has run on since."""
        return next((rank for rank, stop in self.stops if rank.stop is not stop), None)


class AggregateVariables:
    """The engine's part that owns the tops of trees."""

    def __init__(self, core: SessionState) -> None:
        self._core = core
        self._trees: Recent[int, _Tree] = Recent(MAX_TREES)

    def add(self, children: Iterable[Body], ranks: Iterable[Rank]) -> int:
        """Return the reference of a new tree over these ranks, 0 where it has no children."""
        kept = tuple(children)
        if not kept:
            return 0
        for reference in [number for number, tree in self._trees.items() if tree.gone()]:
            del self._trees[reference]
        reference = self._core.handles.reserve()
        stops = tuple((rank, rank.stop) for rank in ranks if rank.stop)
        self._trees[reference] = _Tree(kept, stops)
        return reference

    def owns(self, reference: int) -> bool:
        """Whether this is a tree's top, alive or dead since a moment ago."""
        return reference in self._trees

    def children(self, reference: int) -> list[Body]:
        """Return the `Variable`s below a top. Raises `StaleHandle` once a rank has run on."""
        tree = self._trees[reference]
        gone = tree.gone()
        if gone:
            raise StaleHandle(
                f"variables {reference} is stale: rank {gone.number} has run on since"
            )
        return list(tree.children)


# Answers as a debug console shows them: plain text in a font of one width.

MAX_VALUES: Final = 16  # values that one line shows; the tree below it has all


def merged(values: Sequence[RankValue], errors: Iterable[tuple[str, str]], missing: str) -> str:
    """`⚠ {4}: nan | {0-3}: 2.31`; then who failed, and who did not answer."""
    parts = side_by_side(values)
    if len(parts) > MAX_VALUES:
        parts[MAX_VALUES:] = [f"… {len(parts) - MAX_VALUES} more values"]
    parts += [f"{{{ranks}}}: {message}" for ranks, message in errors]
    if missing:
        parts.append(f"no answer: {missing}")
    lines = any("\n" in one.value for one in values)
    return ("\n" if lines else SEPARATOR).join(parts) or "no ranks"


def number(value: float | None) -> str:
    """Six digits are enough to read."""
    return "-" if value is None else f"{value:.6g}"


NO_ANSWER: Final = "no answer"
MAX_BESIDE: Final = 120  # longer values leave no room for those of other ranks


class Values(Struct, eq=False):
    """The engine's part that makes one value, the body of `evaluate`, from answers of many ranks.

    It asks them for `evaluate` and `%compare`.
    """

    _core: SessionState
    _fan_out: FanOutEvaluator
    _meshes: Meshes
    trees: AggregateVariables

    def evaluate(
        self,
        request: ClientRequest,
        ranks: str,
        expression: str,
        tolerance: Tolerance = EXACT,
        depth: int | None = None,
    ) -> None:
        """Evaluate in these ranks, and answer the request with one value for all of them."""

        def answered(answers: Answers) -> None:
            to_clients.respond(self._core, request, self.body(answers, tolerance))

        def chosen(found: list[Rank]) -> None:
            text = summarised(self._core.injected["tensor_summary"], expression)
            self._fan_out.evaluate(found, text, answered, depth=depth)

        self._meshes.choose(request, ranks, chosen)

    def body(self, answers: Answers, tolerance: Tolerance = EXACT) -> Body:
        """Return a value that unfolds: a child for each distinct value, named by its ranks."""
        if len(answers.values) == 1 and not answers.errors and not answers.missing:
            ((rank, answer),) = answers.values.items()
            return {"result": answer.value, **self._rest(rank, answers)}
        found = comparison_of(answers, tolerance)
        errors = [(self._fold(ranks), text) for text, ranks in most_first(answers.errors)]
        missing = self._fold(answers.missing)
        values, rest = self._grouped(answers, found.groups)
        children = _children(values, rest, found.statistics, errors, missing)
        return {"result": merged(values, errors, missing), **self._tree(children, answers)}

    def beside(self, rank: RankId, own: Body, answers: Answers) -> Body:
        """Return a rank's own value and, where other ranks have answered, theirs behind it.

        It unfolds as the rank's own where all agree, and to the ranks where they do not.
        """
        if not (answers.values.keys() | answers.errors.keys()) - {rank}:
            return own
        found = comparison_of(answers)
        errors = {one: text for one, text in answers.errors.items() if one != rank}
        failed = [(self._fold(ranks), text) for text, ranks in most_first(errors)]
        missing = self._fold(answers.missing - {rank})
        text = own["result"]
        if rank in answers.values and (len(text) > MAX_BESIDE or "\n" in text):
            text = answers.values[rank].value  # a tensor's summary
        others = [group for group in map(partial(_without, rank), found.groups) if group.ranks]
        if rank in answers.values and len(found.groups) == 1 and not failed and not missing:
            return {**own, "result": f"{text} (same in {{{self._fold(others[0].ranks)}}})"}
        values, rest = self._grouped(answers, others)
        this = RankValue(self._fold([rank]), own["result"], rank in found.outliers)
        children: list[Body] = [{"name": marked(this), "value": this.value, **_known(own)}]
        children += _children(values, rest, found.statistics, failed, missing)
        mark = f"{WARNING} " if this.outlier else ""
        line = f"{mark}{text}{SEPARATOR}{merged(values, failed, missing)}"
        return {**own, "result": line, **self._tree(children, answers)}

    def _grouped(
        self, answers: Answers, groups: Iterable[Group]
    ) -> tuple[list[RankValue], list[Body]]:
        """Return each value, and what else its child has."""
        told = [(self._fold(one.ranks), one) for one in groups]
        values = [RankValue(ranks, one.value, one.outlier) for ranks, one in told]
        return values, [self._rest(one.shown_of, answers) for _, one in told]

    def _tree(self, children: list[Body], answers: Answers) -> Body:
        asked = (self._core.ranks[rank] for rank in answers.values)
        return {
            "variablesReference": self.trees.add(children, asked),
            "namedVariables": len(children),
        }

    def of_cast(self, body: Body, asked: list[Rank]) -> Body:
        """Return the body of `cast` as a value; what can be unfolded is a child."""
        results, errors = body["results"], body["errors"]
        if len(asked) == 1 and results:
            return {"result": results[0]["value"], **_known(results[0])}
        said = {
            rank.rank_id: one["value"] for one in results for rank in self.ranks_of(one["ranks"])
        }
        found = compare(said)
        failed = [(one["ranks"], one["message"]) for one in errors]
        values = [RankValue(one["ranks"], one["value"], one["outlier"]) for one in results]
        rest = [_known(one) for one in results]
        children = _children(values, rest, found.statistics, failed)
        unfolds = len(children) > 1 or any(one["variablesReference"] for one in results)
        return {
            "result": merged(values, failed, body["missing"]),
            "variablesReference": self.trees.add(children, asked) if unfolds else 0,
        }

    def ranks_of(self, text: str) -> list[Rank]:
        """Return the ranks that a set means now."""
        return [self._core.ranks[id] for id in parse(text).select(self._core.world())]

    def _rest(self, rank: RankId, answers: Answers) -> Body:
        answer = answers.values[rank]
        reference = handle_of(self._core, rank, answer)
        return _known({"variablesReference": reference, "type": answer.type})

    def _fold(self, ranks: Iterable[RankId]) -> str:
        return named(self._core, ranks)


def _without(rank: RankId, group: Group) -> Group:
    others = tuple(one for one in group.ranks if one != rank)
    shown_of = others[0] if others and group.shown_of == rank else group.shown_of
    return group._replace(ranks=others, shown_of=shown_of)


def _leaf(name: str, value: str) -> Body:
    return {"name": name, "value": value, "variablesReference": 0}


def _children(
    values: list[RankValue],
    rest: list[Body],
    statistics: Statistics | None,
    errors: Iterable[tuple[str, str]],
    missing: str = "",
) -> list[Body]:
    """Return a child for each value, in the order of the line above them; whole values."""
    having = sorted(zip(values, rest, strict=True), key=lambda one: not one[0].outlier)
    return [
        *({"name": marked(value), "value": value.value, **more} for value, more in having),
        *_described(statistics),
        *(_leaf(marked(RankValue(ranks, message)), message) for ranks, message in errors),
        *([_leaf(NO_ANSWER, missing)] if missing else []),
    ]


def _described(statistics: Statistics | None) -> Iterator[Body]:
    """Statistics where there is more than one number to speak of."""
    if statistics is None or statistics.min == statistics.max:
        return
    for name in ("min", "max", "mean", "std"):
        yield _leaf(name, number(getattr(statistics, name)))
    if statistics.histogram:
        yield _leaf("histogram", sparkline(statistics.histogram.counts))


def _known(result: Body) -> Body:
    reference = {"variablesReference": result["variablesReference"]}
    return {**reference, **({"type": result["type"]} if result.get("type") else {})}


# A hover: a value of the frame that an editor shows and, beside it, that of the other ranks.
#
# The others are those that are stopped in the same function, each in its innermost frame of it.
# They are asked for lookups only and have 300 ms, because code of the user may run there: a
# `__repr__`.


HOVER: Final = "hover"
OTHERS_TIMEOUT_S: Final = 0.3
Function: TypeAlias = "tuple[str, str]"
"""The path that clients know its file by, and its name."""


class HoverEvaluator(Struct, eq=False):
    """The engine's part that answers `evaluate` with the context `hover`."""

    _core: SessionState
    _inspector: Inspector
    _fan_out: FanOutEvaluator
    _values: Values

    def evaluate(self, request: ClientRequest, arguments: EvaluateArguments) -> None:
        """Answer for all ranks in the frame's function, or for the frame's rank alone."""
        lookup = is_lookup_text(arguments.expression)
        shown = frame_of(self._core, arguments.frameId or 0) if lookup else None
        if shown is None or shown.rank.main is not None:  # stale, or of a worker: in no rank set
            self._inspector.to_owner_or_focus(request)
            return
        rank, frame = shown.rank, (shown.stop.frames or ())[shown.depth]
        function = frame.path, frame.name
        mains = self._core.sorted_mains()
        ranks = [one for one in mains if one is rank or _frame_of(function, one.stop) is not None]
        if len(ranks) == 1:
            self._inspector.to_owner_or_focus(request)
        else:
            self._beside(request, arguments.expression, rank, function, ranks)

    def _beside(
        self,
        request: ClientRequest,
        expression: str,
        rank: Rank,
        function: Function,
        ranks: list[Rank],
    ) -> None:
        own: list[Body] = []
        everywhere: list[Answers] = []
        problems: list[str] = []

        def finish(_: frozenset[str]) -> None:
            if own:
                body = self._values.beside(rank.rank_id, own[0], everywhere[0])
                to_clients.respond(self._core, request, body)
            else:
                to_clients.refuse(self._core, request, problems[0], to_clients.RANK_ERROR)

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

        self._inspector.to_owner(request.inner(answered))
        text = summarised(self._core.injected["tensor_summary"], expression)
        depth = partial(_frame_of, function)
        self._fan_out.evaluate(ranks, text, told, OTHERS_TIMEOUT_S, depth=depth)


def _frame_of(function: Function, stop: Stop | None) -> int | None:
    """Return the index of the innermost frame of a function, None where there is none."""
    frames = enumerate(stop.frames or ()) if stop else ()
    return next((at for at, one in frames if (one.path, one.name) == function), None)
