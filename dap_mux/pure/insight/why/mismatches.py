"""Verdicts about ranks that wait for each other: in other calls, with other data, in a circle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.stack_tree import Stack
from dap_mux.pure.insight.why.graph import WaitGraph, graph_of, operation
from dap_mux.pure.insight.why.picture import Doing, Picture, same_wait
from dap_mux.pure.insight.why.verdict import (
    Verdict,
    calling,
    look_at,
    place,
    ranks,
    suspects,
    verb,
    who_waits,
)
from dap_mux.pure.insight.why.waits import (
    JOINS,
    PASSED_BY_SOME,
    PORT,
    SENDS,
    UNKNOWN_PEER,
    Wait,
    plain,
)

MOST_PAIRS = 4
Difference = tuple[Callable[[Wait], str], Callable[[Wait], Hashable]]
"""Words for what a rank does, and what must be the same in all."""
KIND: Difference = lambda wait: f"calls {wait}", lambda wait: wait.plain
ORDER: Difference = lambda wait: f"is at {wait}", lambda wait: wait.number
DIFFERENCES: tuple[Difference, ...] = (
    KIND,
    (lambda wait: f"calls {wait} with sizes {_sizes(wait)}", lambda wait: wait.sizes),
    (lambda wait: f"calls {wait} with {', '.join(wait.dtypes)}", lambda wait: wait.dtypes),
    ORDER,
)


def mismatched_collective(picture: Picture) -> Verdict | None:
    """Ranks of one group wait in different collectives, or in one with different data.

    The few are taken for the culprits, if they wait in a circle with the many.
    """
    if verdict := _disagree(picture) or _called_twice(picture):
        return verdict
    graph = graph_of(picture)
    waits = ((one.wait, one) for one in picture.waiting)
    groups = grouped((wait.group, one) for wait, one in waits if wait and wait.collective)
    found = (_in_a_group(members, graph, picture) for members in groups.values())
    if verdict := next(filter(None, found), None) or _in_a_circle(graph, picture):
        return verdict
    return _still_joins(picture) or _by_place(picture)


def _in_a_group(members: list[Doing], graph: WaitGraph, picture: Picture) -> Verdict | None:
    parted = _where_they_parted(members)
    if parted and parted[0].wait and graph.in_a_circle(parted[0].rank):
        return _verdict(KIND[0](parted[0].wait), parted, members, picture)
    for words, key in DIFFERENCES:
        parted = _parted(members, key)
        if not parted:
            continue
        if (words, key) in (KIND, ORDER) and not graph.in_a_circle(parted[0].rank):
            continue  # somebody else is missing, for whom all of them may wait
        parted = _not_kept(parted, members)
        assert parted[0].wait is not None
        return _verdict(words(parted[0].wait), parted, members, picture)
    return None


def _where_they_parted(members: Sequence[Doing]) -> list[Doing] | None:
    """Return who is in another call than most have made under the lowest number that one waits in.

    Some have gone on from there: of a broadcast, all that have got it and passed it on.
    """
    numbers = [one.wait.number for one in members if one.wait]
    first = min(numbers, default=-1)
    if first < 0 or max(numbers) == first:
        return None
    kinds = {one.rank: _kind_of(one, first) for one in members}
    counted = Counter(kinds.values()).most_common(2)
    if "" in kinds.values() or len(counted) < 2 or counted[0][1] == counted[1][1]:
        return None
    return [one for one in members if kinds[one.rank] != counted[0][0]]


def _kind_of(one: Doing, number: int) -> str:
    """Return what a rank has called under a number of its group, "" where no record says so."""
    wait = one.wait
    if wait is None or wait.number == number:
        return wait.plain if wait else ""
    entries = one.samples[-1].collectives
    made = (each for each in entries if (each.group, each.number) == (wait.group, number))
    return next((plain(each.kind) for each in made if not each.p2p), "")


def _disagree(picture: Picture) -> Verdict | None:
    """Ranks are in one call with something different that must be alike in all of them.

    As the destination of a gather, the ranks of a new group, or the port at which all meet.
    """
    calls = grouped((one.wait.call, one) for one in picture.waiting if one.wait)
    for members in calls.values():
        for name in dict.fromkeys(name for one in members for name in _agreed(one)):
            told = [one for one in members if name in _agreed(one)]
            parted = _parted(told, lambda wait, name=name: wait.agreed[name])  # type: ignore[misc]
            wrong = [one for one in told if _agreed(one)[name] != f"for {len(picture.ranks)} ranks"]
            if parted and name == "world_size" and len(wrong) < len(told):
                parted = wrong
            behind = [one for one in told if one.wait and one.wait.calls_itself > 0]
            all_join = name == PORT and behind == told and len(members) == len(picture.live)
            if not parted and all_join and 0 < 2 * len(behind) < len(members):
                told, parted = members, behind  # the others have met there
            if parted:
                theirs = next(one for one in told if one not in parted)
                words = f"calls {parted[0].wait} {_agreed(parted[0])[name]}"
                others = f", not {_agreed(theirs).get(name, 'as the others')},"
                return _verdict(words + others, parted, members, picture)
    return None


def _agreed(one: Doing) -> Mapping[str, str]:
    return one.wait.agreed if one.wait else {}


def _called_twice(picture: Picture) -> Verdict | None:
    """Ranks join the others under the same number, so that another number never comes."""
    waits = ((one.wait, one) for one in picture.waiting)
    by_number = grouped((of.calls_itself, one) for of, one in waits if of and of.calls_itself >= 0)
    twice = {number: of for number, of in by_number.items() if len(of) > 1}
    for number, of in twice.items():
        culprits = [one for one in of if one.rank[1] != number] or of
        return Verdict(
            f"{ranks(of)} both call themselves rank {number} in {of[0].wait}, and the others wait"
            " for one that does not come",
            suspects(culprits, picture),
            who_waits(picture, culprits),
            look_at(culprits),
        )
    return None


def _still_joins(picture: Picture) -> Verdict | None:
    """All ranks wait: most in collectives, and a few in the beginning that those have passed."""
    joins = [one for one in picture.waiting if one.wait is not None and one.wait.kind == JOINS]
    others = [one.wait for one in picture.waiting if one.wait is not None and one not in joins]
    passed = bool(joins) and all(wait.collective and not wait.by_socket for wait in others)
    if not passed or len(joins) >= len(others) or len(picture.waiting) < len(picture.live):
        return None
    told = "".join(f" {text}" for text in _agreed(joins[0]).values())
    words = f"{verb(joins, 'is', 'are')} still in {JOINS}{told}, which has ended for the others,"
    return _verdict(words, joins, picture.waiting, picture)


def _by_place(picture: Picture) -> Verdict | None:
    """All ranks wait, and a few of them at another place than most, as is not known more closely.

    Each of them is in a collective without a number, or waits for a key in the store; or most are
    in sends and receives whose peers nobody knows.
    """
    waiting = picture.waiting
    waits = [one.wait for one in waiting if one.wait is not None]
    unknown = sum(wait.kind == UNKNOWN_PEER for wait in waits)
    told = all(wait.by_place for wait in waits) or 2 * unknown > len(waits)
    if len(waiting) < len(picture.live) or not told:
        return None
    places = Counter(wait.called_at for wait in waits).most_common(2)
    most, count = places[0] if places else ((), 0)
    if len(places) < 2 or count == places[1][1]:
        return None
    few = [one for one in waiting if one.wait is not None and one.wait.called_at != most]
    words = f"{few[0].wait}{calling(few[0])} at {place(few[0].place)}"
    return _verdict(f"{verb(few, 'waits', 'wait')} in {words}", few, waiting, picture)


def _not_kept(parted: list[Doing], members: Sequence[Doing]) -> list[Doing]:
    """Leave out who is only kept in a call that the others have been able to pass.

    The root of a broadcast waits for one that is missing; who has got its part is a line further.
    """
    further = [one.wait.called_at for one in members if one.wait and one not in parted]
    return [one for one in parted if not (one.wait and _is_kept(one.wait, further))] or parted


def _is_kept(wait: Wait, further: Sequence[Stack]) -> bool:
    if wait.plain not in PASSED_BY_SOME or not wait.called_at:
        return False
    *callers, here = wait.called_at
    return any(
        [*stack[:-1]] == callers
        and (stack[-1].path, stack[-1].function) == (here.path, here.function)
        and stack[-1].line > here.line
        for stack in further
        if stack
    )


def _sizes(wait: Wait) -> str:
    return ", ".join(str(list(each)) for each in wait.sizes) or "none"


def _parted(members: Sequence[Doing], key: Callable[[Wait], Hashable]) -> list[Doing] | None:
    """Return those that differ from most, None where all are alike."""
    keys = {one.rank: key(one.wait) for one in members if one.wait}
    counted = Counter(keys.values()).most_common()
    if len(counted) < 2:
        return None
    most = counted[0][0]
    if counted[0][1] == counted[1][1]:  # two halves: those behind, or without the lowest rank
        most = keys[min((-one.wait.number, one.rank) for one in members if one.wait)[1]]
    return [one for one in members if keys[one.rank] != most]


def _verdict(
    words: str,
    culprits: Sequence[Doing],
    members: Sequence[Doing],
    picture: Picture,
) -> Verdict:
    others = [one for one in members if one not in culprits]
    theirs = others[0].wait if others else None
    wait = verb(others, "waits", "wait")
    return Verdict(
        f"{ranks(culprits)}: {words} where {ranks(others)} {wait} in {theirs}",
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
    culprits = _ends_of_sends(pairs, picture) or _where_few_are(by_rank, picture) or by_rank
    told = [f"{ranks([one])} for {ranks([other])} in {one.wait}" for one, other in pairs]
    more = ["and so on"] if len(told) > MOST_PAIRS else []
    return Verdict(
        f"{ranks(circle)} wait for each other: {', '.join([*told[:MOST_PAIRS], *more])}",
        suspects(culprits, picture),
        who_waits(picture),
        "give all ranks the same order of sends, receives, collectives and groups",
    )


def _ends_of_sends(pairs: Sequence[tuple[Doing, Doing]], picture: Picture) -> list[Doing]:
    """A rank that has gone on to a collective, and the one that is in a send or receive with it.

    The other ranks of the circle are in collectives in which these are missing. A send alone is
    named where all others are in the same collective: it was one too many. A receive may be right,
    and its send left out.
    """
    found = [
        pair
        for pair in pairs
        if pair[0].wait and pair[0].wait.point_to_point and pair[1].wait and pair[1].wait.collective
    ]
    alone = [pair[0] for pair in found if pair[0].wait and pair[0].wait.plain in SENDS]
    if len(alone) == 1 == len(found) and same_wait(
        [one for one in picture.waiting if one is not alone[0]]
    ):
        return alone
    return list({one.rank: one for pair in found for one in reversed(pair)}.values())


def _where_few_are(circle: Sequence[Doing], picture: Picture) -> list[Doing]:
    """Those of a circle that do not stand where most ranks do."""
    places = Counter(one.wait.called_at for one in picture.waiting if one.wait is not None)
    (most, _), *_ = places.most_common(1)
    return [one for one in circle if one.wait is not None and one.wait.called_at != most]


def p2p_cycle(picture: Picture) -> Verdict | None:
    """Ranks wait for each other in sends and receives, in a circle.

    Each of them must be in a send or receive: a collective among them is another verdict's.
    """
    circle = [picture.ranks[rank] for rank in sorted(graph_of(picture).circle)]
    if not circle or not all(one.wait and one.wait.point_to_point for one in circle):
        return None
    return Verdict(
        f"{ranks(circle)} wait for each other in a circle of sends and receives",
        suspects(circle, picture),
        who_waits(picture),
        "let one of them receive first, or use isend and irecv",
    )
