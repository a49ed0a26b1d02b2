"""A graph of ranks that wait for each other, for every verdict; ranks that the debugger holds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.why.evidence import Evidence
from dap_mux.pure.insight.why.picture import Doing, Picture, picture_of, same_wait
from dap_mux.pure.insight.why.waits import SENDS, Wait
from dap_mux.pure.rank_sets import RankId, fold

MAX_STARTS: Final = 64
"""From so many ranks the shortest circle is looked for, once no two wait for each other."""
Operation = tuple[str, str, int, tuple[int, ...]]
"""Its kind without its spelling, its group, its number there, and the group's members."""
UNKNOWN: Final[Operation] = ("", "", -1, ())


# A node is a rank that has waited all the time; an edge leads to a rank that it cannot go on
# without, and is there only for a reason that is known: the call names its peer, or a socket leads
# to it, or it belongs to a collective's group and is not in that collective.
@dataclass(frozen=True)
class WaitGraph:
    """The ranks that wait, and for whom; `named`: by a peer of their own, not by a group."""

    waits_for: Mapping[RankId, frozenset[RankId]]
    named: frozenset[RankId]

    @cached_property
    def circle(self) -> Sequence[RankId]:
        """A shortest circle of ranks, each of which waits for the next; () if there is none.

        Of several, one that leads through the peers of sends and receives: these are certain.
        """
        starts = [*sorted(self.named), *(one for one in self.waits_for if one not in self.named)]
        for one in starts:
            for other in sorted(self.waits_for[one]):
                if one in self.waits_for.get(other, ()):
                    return (one, other)
        found = (self._circle_from(one) for one in starts[:MAX_STARTS])
        return min(filter(None, found), key=len, default=())

    def in_a_circle(self, rank: RankId) -> bool:
        """Whether a rank waits, by way of others or not, for itself."""
        return bool(self._circle_from(rank))

    def _circle_from(self, start: RankId) -> tuple[RankId, ...]:
        """The shortest circle through a rank; a set that members share is looked at once."""
        came_from: dict[RankId, RankId] = {}
        expanded: set[int] = set()
        queue = [start]
        for one in queue:  # which grows
            others = self.waits_for.get(one, frozenset())
            if start in others:
                return _way_back(one, came_from)
            if id(others) in expanded:
                continue
            expanded.add(id(others))
            for other in sorted(each for each in others if each not in came_from):
                came_from[other] = one
                queue.append(other)
        return ()


def _way_back(last: RankId, came_from: Mapping[RankId, RankId]) -> tuple[RankId, ...]:
    way = [last]
    while (before := came_from.get(way[-1])) is not None:
        way.append(before)
    return tuple(reversed(way))


def graph_of(picture: Picture) -> WaitGraph:
    """Build it, once for each picture."""
    waits_for: dict[RankId, frozenset[RankId]] = {}
    missing: dict[Operation, frozenset[RankId]] = {}
    named: set[RankId] = set()
    operations = _operations(picture)
    for one in picture.waiting:
        wait = one.wait
        if wait is None or one.leaving:  # it does not come back, whoever it waits for
            continue
        peer = picture.peer(one)
        if peer is not None:
            if peer is not one and not _fit(one, peer, picture):
                waits_for[one.rank] = frozenset((peer.rank,))
                if wait.point_to_point:
                    named.add(one.rank)
        elif wait.collective and not wait.socket:
            key = operation(wait)
            if key not in missing:
                missing[key] = frozenset(_missing(wait, operations, picture))
            waits_for[one.rank] = missing[key]
    return WaitGraph(waits_for, frozenset(named))


def operation(wait: Wait) -> Operation:
    """What ranks of a group do together has the same."""
    return wait.plain, wait.group, wait.number, wait.members


def _operations(picture: Picture) -> Mapping[RankId, Operation]:
    return {one.rank: operation(one.wait) for one in picture.waiting if one.wait is not None}


def _missing(
    wait: Wait, operations: Mapping[RankId, Operation], picture: Picture
) -> Iterator[RankId]:
    """The members of a collective that are not in it; all ranks, where those are not known."""
    if wait.members:
        known = (picture.by_number(number) for number in wait.members)
        members: Iterable[Doing] = (one for one in known if one is not None)
    elif wait.size in (0, len(picture.ranks)):
        members = picture.live
    else:
        return
    for one in members:
        there = operations.get(one.rank)
        if there is None or not _may_be_same(operation(wait), there):
            yield one.rank


def _may_be_same(one: Operation, other: Operation) -> bool:
    """Whether two ranks may be in one operation; what is not known of it does not part them."""
    pairs = zip(one, other, UNKNOWN, strict=True)
    return all(left == right or unknown in (left, right) for left, right, unknown in pairs)


def _fit(one: Doing, peer: Doing, picture: Picture) -> bool:
    """Whether these are a send and the receive that it is for, which only take their time."""
    if one.wait is None or peer.wait is None or picture.peer(peer) is not one:
        return False
    if not (one.wait.point_to_point and peer.wait.point_to_point):
        return False
    return {one.wait.plain in SENDS, peer.wait.plain in SENDS} == {True, False}


# Who, of ranks that a user has let run, waits for ranks that the debugger holds.

NO_NUMBER: Final = -1


@dataclass(frozen=True)
class Standing:
    """A rank that stands: `place` as in `train.py:102`; `ends`: at an uncaught exception."""

    place: str
    ends: bool = False


@dataclass(frozen=True)
class HeldUp:
    """`wait`: `waits in all_reduce for rank 1`; `sentence`: who does, and what lets them on."""

    waiting: tuple[RankId, ...]
    held: tuple[RankId, ...]
    wait: str
    sentence: str


def held_up(
    evidence: Evidence,
    run: Collection[RankId],
    stand: Mapping[RankId, Standing],
    default_group: str,
) -> Iterator[HeldUp]:
    """Yield those of `run` that wait for some of `stand`: who waits for the same is one of them.

    Nothing is said of a rank that may wait for others that run.
    """
    picture = picture_of(evidence)
    waits = [(one.wait, one) for one in picture.live if one.rank in run]
    found = [(w, _awaited(picture, one, w, stand), one.rank) for w, one in waits if w is not None]
    alike = grouped(((str(replace(w, peer=NO_NUMBER)), of), rank) for w, of, rank in found if of)
    for (wait_for, held), waiting in alike.items():
        yield _told(tuple(waiting), held, wait_for, stand, default_group)


def _awaited(
    picture: Picture, one: Doing, wait: Wait, stand: Mapping[RankId, Standing]
) -> tuple[RankId, ...]:
    """Return the ranks that stand and that this one waits for, () where others may be it."""
    if not wait.collective:
        peer = picture.peer(one)
        return (peer.rank,) if peer is not None and peer.rank in stand else ()
    missing = [
        other
        for other in picture.ranks.values()
        if other is not one and _takes_part(other, one, wait) and not _is_there(other, one, wait)
    ]
    held = tuple(other.rank for other in missing if other.rank in stand)
    certain = len(held) == len(missing) or wait.number != NO_NUMBER
    return held if certain and not any(other.ended for other in missing) else ()


def _takes_part(other: Doing, one: Doing, wait: Wait) -> bool:
    return other.number in wait.members if wait.members else other.rank[0] == one.rank[0]


def _is_there(other: Doing, one: Doing, wait: Wait) -> bool:
    """Whether it waits in the same call, or has made it already, as torch records."""
    if other.wait is not None and same_wait([one, other]) is not None:
        return True
    known = other.samples[-1].collectives if other.samples else ()
    made = (each.number for each in known if each.group == wait.group and not each.p2p)
    return wait.number != NO_NUMBER and max(made, default=NO_NUMBER) >= wait.number


def _told(
    waiting: tuple[RankId, ...],
    held: tuple[RankId, ...],
    wait: str,
    stand: Mapping[RankId, Standing],
    group: str,
) -> HeldUp:
    one, alone = len(waiting) == 1, len(held) == 1
    who = f"rank{'' if one else 's'} {fold(waiting, group)}"
    awaited = f"rank{'' if alone else 's'} {fold(held, group)}"
    places = list(dict.fromkeys(stand[rank].place for rank in held if stand[rank].place))
    where = f" at {', '.join(places)}" if places else ""
    ends = any(stand[rank].ends for rank in held)
    exception = " with an uncaught exception" if ends else ""
    both = "both" if one and alone else "all"
    text = fold(held, group)
    hint = "" if ends else f"; `cast {text} n` lets {both} on"
    waits = f"wait{'s' if one else ''} in {wait} for {awaited}"
    stands = f"which stand{'s' if alone else ''}{where}{exception}"
    return HeldUp(waiting, held, f"waits in {wait} for {awaited}", f"{who} {waits}, {stands}{hint}")
