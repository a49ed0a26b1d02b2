"""When ranks have entered and left their collectives, by one clock: the input of `slow`.

`Pace` is what `injected/evidence/pace.py` tells of a rank, as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

from msgspec import Struct

from dap_mux.pure.insight.stack_tree import Frame
from dap_mux.pure.rank_sets import RankId

ROOTED: Final = re.compile(r"(?i)i?(broadcast|bcast|(gather|scatter)v?|reduce|(ex)?scan)")
"""Kinds that a rank may leave before the last one has entered: they align no clocks."""


class Pace(Struct, frozen=True):
    """A rank's answer; times in µs since `base`, which is in µs of its own clock.

    `groups`: names, and the global ranks of each. `calls`: the places of group, kind and line in
    their lists, the number in the group, begin and end (None while open). `spots`: path, function
    and line of the innermost frame of the user's code, and the library's function that it has
    called; `samples`: when the main thread was at which, and how long it has waited for a processor
    since the one before. `pauses`: of the garbage collection. `began`: of the look. `ran`: how long
    the main thread has had a processor. `processors`: how many it may use. `problem`: why there
    are no calls.
    """

    host: str = ""
    base: int = 0
    began: int = 0
    ended: int = 0
    ran: int = 0
    processors: int = 0
    problem: str = ""
    groups: list[tuple[str, list[int]]] = []
    kinds: list[str] = []
    lines: list[str] = []
    calls: list[tuple[int, int, int, int, int, int | None]] = []
    spots: list[tuple[str, str, int, str]] = []
    samples: list[tuple[int, int, int]] = []
    pauses: list[tuple[int, int]] = []

    def __post_init__(self) -> None:
        for group, kind, line, *_ in self.calls:
            _check(group, self.groups)
            _check(kind, self.kinds)
            _check(line, self.lines)
        for _, spot, _ in self.samples:
            _check(spot, self.spots)


def _check(place: int, names: Sequence[object]) -> None:
    if not 0 <= place < len(names):
        raise ValueError("a group, kind, line or place that is not listed")


class Call(NamedTuple):
    """One call in a group; `ended` is None while it is open. `line`: `path:line function`."""

    number: int
    kind: str
    line: str
    began: int
    ended: int | None


class Spot(NamedTuple):
    """Where a rank is: the user's frame, and the library's function that it has called, or ""."""

    frame: Frame
    calls: str


@dataclass(frozen=True)
class Timeline:
    """What one rank did, by the clock that all of its group share.

    `slack`: how far that clock may be off for it. `samples`: until when it was where, since the
    sample before, and for how long of that it had no processor though it had work; `ran`: with
    one. `starving`: how long without for each µs with one. `end`: of the look.
    """

    rank: RankId
    calls: Mapping[int, Call]
    samples: Sequence[tuple[int, Spot, int]]
    pauses: Sequence[tuple[int, int]]
    end: int
    ran: int = 0
    starving: float = 0.0
    slack: int = 0

    @property
    def newest(self) -> Call:
        """The last call that has begun."""
        return self.calls[max(self.calls)]


@dataclass(frozen=True)
class Group:
    """The ranks of a group that have told something. `members`: how many it has."""

    name: str
    members: int
    timelines: Mapping[RankId, Timeline]

    def collectives(self) -> Iterator[Mapping[RankId, Call]]:
        """Yield those that all of the ranks have entered, in order."""
        calls = [timeline.calls for timeline in self.timelines.values()]
        for number in sorted(set(calls[0]).intersection(*calls[1:])):
            found = {rank: one.calls[number] for rank, one in self.timelines.items()}
            if len({call.kind for call in found.values()}) == 1:
                yield found


def groups_of(paces: Mapping[RankId, Pace]) -> list[Group]:
    """Return the groups of two ranks and more that have told calls."""
    members: dict[tuple[str, str, tuple[int, ...]], dict[RankId, dict[int, Call]]] = {}
    for rank, pace in paces.items():
        for (name, ranks), call in _calls(pace):
            key = rank[0], name, tuple(ranks)
            members.setdefault(key, {}).setdefault(rank, {})[call.number] = call
    return [
        Group(name, len(ranks), _aligned(paces, calls))
        for (_, name, ranks), calls in members.items()
        if len(calls) > 1
    ]


def _calls(pace: Pace) -> Iterator[tuple[tuple[str, list[int]], Call]]:
    for group, kind, line, number, began, ended in pace.calls:
        end = None if ended is None else pace.base + ended
        call = Call(number, pace.kinds[kind], pace.lines[line], pace.base + began, end)
        yield pace.groups[group], call


def _aligned(
    paces: Mapping[RankId, Pace], calls: Mapping[RankId, Mapping[int, Call]]
) -> dict[RankId, Timeline]:
    clocks = _clocks({rank: paces[rank].host for rank in calls}, calls)
    found = {}
    for rank, own in calls.items():
        pace, (offset, slack) = paces[rank], clocks[paces[rank].host]
        shift = pace.base - offset
        spots = [Spot(Frame(path, name, line), inner) for path, name, line, inner in pace.spots]
        found[rank] = Timeline(
            rank,
            {number: _moved(call, -offset) for number, call in own.items()},
            [(at + shift, spots[spot], starved) for at, spot, starved in pace.samples],
            [(begin + shift, end + shift) for begin, end in pace.pauses],
            pace.ended + shift,
            pace.ran,
            sum(starved for *_, starved in pace.samples) / max(1, pace.ran),
            slack,
        )
    return found


def _moved(call: Call, by: int) -> Call:
    ended = None if call.ended is None else call.ended + by
    return call._replace(began=call.began + by, ended=ended)


def _clocks(
    hosts: Mapping[RankId, str], calls: Mapping[RankId, Mapping[int, Call]]
) -> dict[str, tuple[int, int]]:
    """Return how far each host's clock is ahead of the first one's, and how sure that is, in µs.

    A collective ends everywhere at about the same time, and nowhere before the last rank has
    entered it. What has ended longer after its last entry than usual tells less.
    """
    first, *others = sorted({*hosts.values()})
    found = {first: (0, 0)}
    for host in others:
        ahead: list[int] = []
        least, most = None, None
        for number in set.intersection(*map(set, calls.values())):
            here = [calls[rank][number] for rank in calls if hosts[rank] == first]
            there = [calls[rank][number] for rank in calls if hosts[rank] == host]
            left, reached = _end(here), _end(there)
            if left is None or reached is None or ROOTED.fullmatch(here[0].kind):
                continue
            ahead.append(reached - left)
            low = max(call.began for call in there) - left
            high = reached - max(call.began for call in here)
            least = low if least is None else max(low, least)
            most = high if most is None else min(high, most)
        found[host] = _between(ahead, least, most)
    return found


def _end(calls: Sequence[Call]) -> int | None:
    """Return when the first of them has left, None while one is open."""
    ends = [call.ended for call in calls if call.ended is not None]
    return min(ends) if len(ends) == len(calls) else None


UNKNOWN_US: Final = 10**15


def _between(ahead: Sequence[int], least: int | None, most: int | None) -> tuple[int, int]:
    if least is None or most is None:
        return 0, UNKNOWN_US
    middle = int(median(ahead))
    spread = int(median(abs(each - middle) for each in ahead))
    return max(least, min(most, middle)), spread
