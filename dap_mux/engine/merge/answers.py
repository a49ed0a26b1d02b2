"""Answers of many ranks to one command, folded: `{0-3,5-7}: 2.31 | {4}: nan`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from dap_mux.rank_sets import RankId

Body: TypeAlias = dict[str, Any]
Label: TypeAlias = Callable[[Iterable[RankId]], str]
K = TypeVar("K", bound=Hashable)


def folded(
    values: Mapping[RankId, tuple[str, str]],
    errors: Mapping[RankId, str],
    label: Label,
    reference: Callable[[RankId], int],
) -> Body:
    """Return `results`, `errors` and `outliers`.

    `values` are (value, type). Most ranks come first, among equals the lowest. `reference` is
    asked once for each distinct value, of its lowest rank.
    """
    groups = most_first(values)
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
    return {"results": results, "errors": failed, "outliers": label(outliers(groups))}


def most_first(things: Mapping[RankId, K]) -> list[tuple[K, list[RankId]]]:
    """Return each distinct thing with its ranks, sorted."""
    groups: dict[K, list[RankId]] = {}
    for rank in sorted(things):
        groups.setdefault(things[rank], []).append(rank)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[1][0]))


def outliers(groups: list[tuple[K, list[RankId]]]) -> list[RankId]:
    """Return who differs from more than half of all; nobody where there is no such half."""
    sizes = [len(ranks) for _, ranks in groups]
    if not sizes or 2 * sizes[0] <= sum(sizes):
        return []
    return sorted(rank for _, ranks in groups[1:] for rank in ranks)
