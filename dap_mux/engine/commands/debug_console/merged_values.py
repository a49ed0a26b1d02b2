"""What several ranks answered, as the one value that a watch or a debug console shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dap_mux.engine.commands.debug_console.rendering import merged, number
from dap_mux.engine.commands.requests.cast import named
from dap_mux.engine.commands.requests.compare import comparison_of
from dap_mux.engine.evaluate.aggregate_variables import AggregateVariables
from dap_mux.engine.evaluate.fan_out import Answer, Answers, handle_of
from dap_mux.engine.evaluate.fold import most_first
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.insight.compare import Comparison, Statistics, Tolerance, compare, sparkline
from dap_mux.rank_sets import RankId, parse


class Values:
    """Makes the body of `evaluate` from answers."""

    def __init__(self, core: SessionState, trees: AggregateVariables) -> None:
        self._core = core
        self.trees = trees

    def body(self, answers: Answers, tolerance: Tolerance | None = None) -> Body:
        """Return a value that unfolds: a child for each distinct value, named by its ranks."""
        if len(answers.values) == 1 and not answers.errors and not answers.missing:
            ((rank, answer),) = answers.values.items()
            return {"result": answer.value, **self._rest(rank, answer)}
        found = comparison_of(answers, tolerance or Tolerance())
        errors = [(self._fold(ranks), text) for text, ranks in most_first(answers.errors)]
        values = [(self._fold(group.ranks), group.value) for group in found.groups]
        missing, outliers = self._fold(answers.missing), self._fold(found.outliers)
        children = [*self._values(answers, found), *_described(found.statistics)]
        children += _leaves("outliers", outliers)
        children += [_leaf(ranks, text) for ranks, text in errors]
        children += _leaves("no answer", missing)
        asked = (self._core.ranks[rank] for rank in answers.values)
        return {
            "result": merged(values, errors, missing, outliers),
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
        children: list[Body] = [
            {"name": one["ranks"], "value": one["value"], **_known(one)} for one in results
        ]
        children += [
            *_described(found.statistics),
            *_leaves("outliers", self._fold(found.outliers)),
        ]
        children += [_leaf(name, message) for name, message in failed]
        unfolds = len(children) > 1 or any(one["variablesReference"] for one in results)
        values = [(one["ranks"], one["value"]) for one in results]
        return {
            "result": merged(values, failed, body["missing"], self._fold(found.outliers)),
            "variablesReference": self.trees.add(children, asked) if unfolds else 0,
        }

    def ranks_of(self, text: str) -> list[Rank]:
        """Return the ranks that a set means now."""
        return [self._core.ranks[id] for id in parse(text).select(self._core.world())]

    def _values(self, answers: Answers, found: Comparison) -> Iterator[Body]:
        for group in found.groups:
            rest = self._rest(group.shown_of, answers.values[group.shown_of])
            yield {"name": self._fold(group.ranks), "value": group.value, **rest}

    def _rest(self, rank: RankId, answer: Answer) -> Body:
        reference = handle_of(self._core, rank, answer)
        return {"variablesReference": reference, **({"type": answer.type} if answer.type else {})}

    def _fold(self, ranks: Iterable[RankId]) -> str:
        return named(self._core, ranks)


def _leaf(name: str, value: str) -> Body:
    return {"name": name, "value": value, "variablesReference": 0}


def _leaves(name: str, value: str) -> list[Body]:
    """A child where there is something to say."""
    return [_leaf(name, value)] if value else []


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
    return {**reference, **({"type": result["type"]} if result["type"] else {})}
