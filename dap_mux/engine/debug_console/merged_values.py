"""What several ranks answered, as the one value that a watch or a debug console shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from dap_mux.engine.debug_console.rendering import merged, number
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import named
from dap_mux.engine.values.aggregate_variables import AggregateVariables
from dap_mux.engine.values.compare import comparison_of
from dap_mux.engine.values.replies import Answers, handle_of
from dap_mux.insight.compare import Group, Statistics, Tolerance, compare, sparkline
from dap_mux.insight.fold import most_first
from dap_mux.rank_sets import RankId, parse
from dap_mux.rank_values import SEPARATOR, WARNING, RankValue, marked

NO_ANSWER: Final = "no answer"
MAX_BESIDE: Final = 120  # longer values leave no room for those of other ranks


class Values:
    """Makes the body of `evaluate` from answers."""

    def __init__(self, core: SessionState, trees: AggregateVariables) -> None:
        self._core = core
        self.trees = trees

    def body(self, answers: Answers, tolerance: Tolerance | None = None) -> Body:
        """Return a value that unfolds: a child for each distinct value, named by its ranks."""
        if len(answers.values) == 1 and not answers.errors and not answers.missing:
            ((rank, answer),) = answers.values.items()
            return {"result": answer.value, **self._rest(rank, answers)}
        found = comparison_of(answers, tolerance or Tolerance())
        errors = [(self._fold(ranks), text) for text, ranks in most_first(answers.errors)]
        missing = self._fold(answers.missing)
        values, rest = self._grouped(answers, found.groups)
        children = [*_named(values, rest), *_described(found.statistics), *_failed(errors)]
        children += [_leaf(NO_ANSWER, missing)] if missing else []
        return {"result": merged(values, errors, missing), **self._tree(children, answers)}

    def beside(self, rank: RankId, own: Body, answers: Answers) -> Body:
        """Return a rank's own value and, where other ranks have answered, theirs behind it.

        It unfolds as the rank's own where all agree, and to the ranks where they do not.
        """
        if not (answers.values.keys() | answers.errors.keys()) - {rank}:
            return own
        found = comparison_of(answers, Tolerance())
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
        children += [*_named(values, rest), *_described(found.statistics), *_failed(failed)]
        children += [_leaf(NO_ANSWER, missing)] if missing else []
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
        children = [*_named(values, rest), *_described(found.statistics), *_failed(failed)]
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
        return {"variablesReference": reference, **({"type": answer.type} if answer.type else {})}

    def _fold(self, ranks: Iterable[RankId]) -> str:
        return named(self._core, ranks)


def _without(rank: RankId, group: Group) -> Group:
    others = tuple(one for one in group.ranks if one != rank)
    shown_of = others[0] if others and group.shown_of == rank else group.shown_of
    return group._replace(ranks=others, shown_of=shown_of)


def _leaf(name: str, value: str) -> Body:
    return {"name": name, "value": value, "variablesReference": 0}


def _named(values: list[RankValue], rest: list[Body]) -> Iterator[Body]:
    """Yield a child for each value, in the order of the line above them; whole values."""
    having = zip(values, rest, strict=True)
    for value, more in sorted(having, key=lambda one: not one[0].outlier):
        yield {"name": marked(value), "value": value.value, **more}


def _failed(errors: Iterable[tuple[str, str]]) -> Iterator[Body]:
    for ranks, message in errors:
        yield _leaf(marked(RankValue(ranks, message)), message)


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
