"""Answers of many ranks to one command, folded: `{0-3,5-7}: 2.31 | {4}: nan`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, TypeAlias

from dap_mux.pure.insight.compare import compare, without_addresses
from dap_mux.pure.rank_sets import RankId

RankLabel: TypeAlias = Callable[[Iterable[RankId]], str]


def folded(
    values: Mapping[RankId, tuple[str, str]],
    errors: Mapping[RankId, str],
    label: RankLabel,
    reference: Callable[[RankId], int],
) -> dict[str, Any]:
    """Return `results`, `errors` and `outliers`.

    `values` are (value, type). Most ranks come first, among equals the lowest; outliers (those of
    `compare`) last. `reference` is
    asked once for each distinct value, of its lowest rank.
    """
    groups = _grouped(values)
    odd: frozenset[RankId] = frozenset()
    if len(groups) > 1:
        odd = compare({rank: value for rank, (value, _) in values.items()}).outliers
        groups.sort(key=lambda group: group[2][0] in odd)
    results = [
        {
            "ranks": label(ranks),
            "value": value,
            "type": type,
            "variablesReference": reference(ranks[0]),
            "outlier": ranks[0] in odd,
        }
        for value, type, ranks in groups
    ]
    failed = [{"ranks": label(ranks), "message": text} for text, ranks in most_first(errors)]
    return {"results": results, "errors": failed, "outliers": label(sorted(odd))}


def most_first(
    texts: Mapping[RankId, str], types: Mapping[RankId, str] | None = None
) -> list[tuple[str, list[RankId]]]:
    """Return each distinct text with its ranks, sorted; ranks of different types are apart.

    Addresses of objects do not count, and are masked where they differ.
    """
    said = {rank: (text, types[rank] if types else "") for rank, text in texts.items()}
    return [(text, ranks) for text, _, ranks in _grouped(said)]


def _grouped(said: Mapping[RankId, tuple[str, str]]) -> list[tuple[str, str, list[RankId]]]:
    """Return each distinct text and type with its ranks, as `most_first` has them.

    Most ranks say the same: a text is looked at once, not for each of a thousand.
    """
    same: dict[tuple[str, str], list[RankId]] = {}
    for rank, pair in said.items():
        ranks = same.get(pair)
        if ranks is None:
            same[pair] = [rank]
        else:
            ranks.append(rank)
    alike: dict[tuple[str, str], list[tuple[str, list[RankId]]]] = {}
    for (text, type), ranks in same.items():
        alike.setdefault((without_addresses(text), type), []).append((text, ranks))
    groups = [
        (
            members[0][0] if len(members) == 1 else masked,
            type,
            sorted(chain.from_iterable(ranks for _, ranks in members)),
        )
        for (masked, type), members in alike.items()
    ]
    return sorted(groups, key=lambda group: (-len(group[2]), group[2][0]))
