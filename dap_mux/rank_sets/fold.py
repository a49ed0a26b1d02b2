"""Formats ranks as the shortest text: `0-3,7`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from dap_mux.rank_sets.world import RankId


def fold(ranks: Iterable[RankId], default_group: str = "job") -> str:
    """`0-3,7` for ranks of one group, `trainer:0-3; eval:0` for several, "" for none.

    The default group comes first, the others by name. A lone group goes unnamed, so the
    text parses back to the same ranks only where plain numbers mean that group.
    """
    groups: defaultdict[str, set[int]] = defaultdict(set)
    for group, rank in ranks:
        groups[group].add(rank)
    if len(groups) < 2:
        return "".join(map(fold_numbers, groups.values()))
    order = sorted(groups, key=lambda group: (group != default_group, group))
    return "; ".join(f"{group}:{fold_numbers(groups[group])}" for group in order)


def name_ranks(ranks: Collection[RankId], default_group: str) -> str:
    """`rank 3`, `ranks 0-3,7`, or `rank driver:0` where plain numbers mean another group."""
    groups = {group for group, _ in ranks}
    text = fold(ranks, default_group)
    if len(groups) == 1 and default_group not in groups:
        text = f"{groups.pop()}:{text}"
    return f"rank{'s' if len(ranks) > 1 else ''} {text}"


def fold_numbers(numbers: Iterable[int]) -> str:
    """`0-3,7` from distinct numbers in any order; two neighbours fold already."""
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _runs(numbers)
    )


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    ordered = iter(sorted(numbers))
    first = last = next(ordered, None)
    for number in ordered:
        if first is not None and last is not None and number > last + 1:
            yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last
