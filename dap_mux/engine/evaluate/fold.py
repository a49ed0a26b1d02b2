"""Answers of many ranks to one command, folded: `{0-3,5-7}: 2.31 | {4}: nan`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from dap_mux.engine.state.bodies import Body
from dap_mux.insight.compare import compare
from dap_mux.rank_sets import RankId

RankLabel: TypeAlias = Callable[[Iterable[RankId]], str]
K = TypeVar("K", bound=Hashable)


def folded(
    values: Mapping[RankId, tuple[str, str]],
    errors: Mapping[RankId, str],
    label: RankLabel,
    reference: Callable[[RankId], int],
) -> Body:
    """Return `results`, `errors` and `outliers`.

    `values` are (value, type). Most ranks come first, among equals the lowest; outliers (those of
    `compare`) last. `reference` is
    asked once for each distinct value, of its lowest rank.
    """
    groups = most_first(values)
    odd: frozenset[RankId] = frozenset()
    if len(groups) > 1:
        odd = compare({rank: value for rank, (value, _) in values.items()}).outliers
        groups.sort(key=lambda group: group[1][0] in odd)
    results = [
        {
            "ranks": label(ranks),
            "value": value,
            "type": type,
            "variablesReference": reference(ranks[0]),
        }
        for (value, type), ranks in groups
    ]
    failed = [{"ranks": label(ranks), "message": text} for text, ranks in most_first(errors)]
    return {"results": results, "errors": failed, "outliers": label(sorted(odd))}


def most_first(things: Mapping[RankId, K]) -> list[tuple[K, list[RankId]]]:
    """Return each distinct thing with its ranks, sorted."""
    groups: dict[K, list[RankId]] = {}
    for rank in sorted(things):
        groups.setdefault(things[rank], []).append(rank)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[1][0]))
