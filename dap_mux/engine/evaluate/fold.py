"""Answers of many ranks to one command, folded: `{0-3,5-7}: 2.31 | {4}: nan`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from dap_mux.engine.state.bodies import Body
from dap_mux.insight.compare import compare
from dap_mux.insight.object_addresses import common_text, without_addresses
from dap_mux.rank_sets import RankId

RankLabel: TypeAlias = Callable[[Iterable[RankId]], str]


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
    texts = {rank: value for rank, (value, _) in values.items()}
    types = {rank: type for rank, (_, type) in values.items()}
    groups = most_first(texts, types)
    odd: frozenset[RankId] = frozenset()
    if len(groups) > 1:
        odd = compare(texts).outliers
        groups.sort(key=lambda group: group[1][0] in odd)
    results = [
        {
            "ranks": label(ranks),
            "value": value,
            "type": types[ranks[0]],
            "variablesReference": reference(ranks[0]),
            "outlier": ranks[0] in odd,
        }
        for value, ranks in groups
    ]
    failed = [{"ranks": label(ranks), "message": text} for text, ranks in most_first(errors)]
    return {"results": results, "errors": failed, "outliers": label(sorted(odd))}


def most_first(
    texts: Mapping[RankId, str], types: Mapping[RankId, str] | None = None
) -> list[tuple[str, list[RankId]]]:
    """Return each distinct text with its ranks, sorted; ranks of different types are apart.

    Addresses of objects do not count, and are masked where they differ.
    """
    groups: dict[tuple[str, str], list[RankId]] = {}
    for rank in sorted(texts):
        key = without_addresses(texts[rank]), types[rank] if types else ""
        groups.setdefault(key, []).append(rank)
    ordered = sorted(groups.values(), key=lambda ranks: (-len(ranks), ranks[0]))
    return [(common_text(texts[rank] for rank in ranks), ranks) for ranks in ordered]
