"""Ranks of one group wait in different collectives, or in one with different data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from dap_mux.insight.why.graph import WaitGraph, graph_of, operation
from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import Verdict, ranks, suspects, who_waits
from dap_mux.insight.why.waits import Wait

NAME = "mismatched-collective"
MOST_PAIRS = 4
Describe = Callable[[Doing], tuple[str, Hashable]]
"""Words for what a rank does, and what must be the same in all."""


def find(picture: Picture) -> Verdict | None:
    """The few are taken for the culprits, if they wait in a circle with the many."""
    graph = graph_of(picture)
    groups: dict[str, list[Doing]] = {}
    for one in picture.waiting:
        if one.wait is not None and one.wait.collective:
            groups.setdefault(one.wait.group, []).append(one)
    for members in groups.values():
        for describe in (_kind, _shape, _dtype, _order):
            parted = _parted(members, describe)
            if not parted:
                continue
            if describe in (_kind, _order) and not graph.in_a_circle(parted[0].rank):
                continue  # somebody else is missing, for whom all of them may wait
            return _verdict(describe(parted[0]), parted, members, picture)
    return _in_a_circle(graph, picture)


def _kind(one: Doing) -> tuple[str, Hashable]:
    assert one.wait is not None
    return f"calls {one.wait}", one.wait.plain


def _shape(one: Doing) -> tuple[str, Hashable]:
    assert one.wait is not None
    return f"calls {one.wait} with sizes {_sizes(one.wait)}", one.wait.sizes


def _dtype(one: Doing) -> tuple[str, Hashable]:
    assert one.wait is not None
    return f"calls {one.wait} with {', '.join(one.wait.dtypes)}", one.wait.dtypes


def _order(one: Doing) -> tuple[str, Hashable]:
    assert one.wait is not None
    return f"is at {one.wait}", one.wait.number


def _sizes(wait: Wait) -> str:
    return ", ".join(str(list(each)) for each in wait.sizes) or "none"


def _parted(members: Sequence[Doing], describe: Describe) -> list[Doing] | None:
    """Return those that differ from most, None where all are alike."""
    keys = {one.rank: describe(one)[1] for one in members}
    counted = Counter(keys.values()).most_common()
    if len(counted) < 2:
        return None
    most = counted[0][0]
    if counted[0][1] == counted[1][1]:  # two halves: those behind
        most = max((one.wait.number, keys[one.rank]) for one in members if one.wait)[1]
    return [one for one in members if keys[one.rank] != most]


def _verdict(
    words: tuple[str, Hashable],
    culprits: Sequence[Doing],
    members: Sequence[Doing],
    picture: Picture,
) -> Verdict:
    others = [one for one in members if one not in culprits]
    theirs = others[0].wait if others else None
    return Verdict(
        NAME,
        f"{ranks(culprits)}: {words[0]} where {ranks(others)} wait in {theirs}",
        suspects(culprits, picture),
        who_waits(picture),
        f"compare the code at both places: dap-mux stacks {ranks(members).partition(' ')[2]}",
    )


def _in_a_circle(graph: WaitGraph, picture: Picture) -> Verdict | None:
    """Ranks wait for each other in groups, or one in a receive and one in a collective."""
    circle = [picture.ranks[rank] for rank in graph.circle]
    waits = [one.wait for one in circle if one.wait is not None]
    if len(waits) < len(circle) or not any(wait.collective for wait in waits):
        return None
    if len({(operation(wait), wait.called_at) for wait in waits}) < 2:
        return None  # they are in the same call: it only takes its time
    pairs = [*zip(circle, (*circle[1:], circle[0]), strict=True)]
    by_rank = sorted(circle, key=lambda one: one.rank)
    culprits = _ends_of_sends(pairs) or _where_few_are(by_rank, picture) or by_rank
    told = [f"{ranks([one])} for {ranks([other])} in {one.wait}" for one, other in pairs]
    more = ["and so on"] if len(told) > MOST_PAIRS else []
    return Verdict(
        NAME,
        f"{ranks(circle)} wait for each other: {', '.join([*told[:MOST_PAIRS], *more])}",
        suspects(culprits, picture),
        who_waits(picture),
        "give all ranks the same order of sends, receives, collectives and groups",
    )


def _ends_of_sends(pairs: Sequence[tuple[Doing, Doing]]) -> list[Doing]:
    """A rank that has gone on to a collective, and the one that is in a send or receive with it.

    The other ranks of the circle are in collectives in which these are missing.
    """
    found = [
        pair
        for pair in pairs
        if pair[0].wait and pair[0].wait.point_to_point and pair[1].wait and pair[1].wait.collective
    ]
    return list({one.rank: one for pair in found for one in reversed(pair)}.values())


def _where_few_are(circle: Sequence[Doing], picture: Picture) -> list[Doing]:
    """Those of a circle that do not stand where most ranks do."""
    places = Counter(one.wait.called_at for one in picture.waiting if one.wait is not None)
    (most, _), *_ = places.most_common(1)
    return [one for one in circle if one.wait is not None and one.wait.called_at != most]
