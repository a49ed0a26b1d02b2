"""Finds which rank makes the others wait, and where: `why --slow`.

A rank is blamed for the time that it adds to the wait: DDP's reducer, say, sends several buckets
one after the other, and a rank that is late in the first one is as late in all others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from statistics import median
from typing import Any, Final, NamedTuple

from dap_mux.pure.insight.numerics.pace import ROOTED, Call, Group, Pace, Spot, Timeline, groups_of
from dap_mux.pure.insight.stack_tree import Frame
from dap_mux.pure.insight.why.verdict import Suspect, Verdict, named_ids, place
from dap_mux.pure.rank_sets import RankId

ENOUGH: Final = 20
"""Collectives of the look itself that are told from those before it."""
FEWEST: Final = 8
WARM_UP: Final = 10
"""Collectives with which a job begins: first steps allocate, compile and import."""
PAUSES: Final = 2
"""So many of the longest delays may have happened by chance, such as a checkpoint's."""
LEAST_OF_TIME: Final = 0.15
"""That the others wait for the rank; noise of a machine with other work is below."""
AS_MUCH_AS_NEXT: Final = 2.0
"""So many times as long as for any other rank."""
BY_CHANCE: Final = 0.01
LEAST_LAST: Final = 0.8
"""Of the collectives that ranks have waited for: slow ranks had 93 % and more (measured)."""
SHORTEST_US: Final = 500
MOSTLY: Final = 0.5
MORE_WORK: Final = 1.5
COLLECTION: Final = "the garbage collection"
STARVED: Final = "waiting for a processor, which other work has,"
LEAST_STARVED: Final = 0.5
"""The same where a rank waits for a processor: on a machine with other work any rank may."""
STUCK_US: Final = 1_000_000


class Turn(NamedTuple):
    """One collective: who was `last`, by how much, and what of it is new since the one before.

    Who is late because another rank has kept it in the collective before is not the last.
    """

    number: int
    last: RankId
    behind: int
    delay: int
    began: int


@dataclass(frozen=True)
class Pacing:
    """The rank that the others of a group wait for; times in µs.

    `waited`: how many collectives ranks have notably waited for; `own`: those in which it was for
    this one. `length`: of all that is known.
    """

    group: Group
    rank: RankId
    waited: int
    own: Sequence[Turn]
    length: int

    @property
    def last_in(self) -> float:
        """The share of the collectives that ranks have waited for this one."""
        return len(self.own) / self.waited

    @property
    def delay(self) -> int:
        """How late it usually is."""
        return int(median(turn.delay for turn in self.own))

    @property
    def period(self) -> int:
        """Time from one such turn to the next."""
        return max(self.delay, self.length // len(self.own))

    @property
    def share(self) -> float:
        """How much of the time the others wait for it."""
        return self.delay / self.period


def slowest(groups: Iterable[Group], began: int) -> Pacing | None:
    """Return who keeps others waiting longest, None if nobody does; `began`: that of the look."""
    found = [pacing for group in groups if (pacing := _pacing(group, began)) is not None]
    return max(found, key=lambda one: one.share, default=None)


def _pacing(group: Group, began: int) -> Pacing | None:
    every = [turn for turn in turns_of(group) if turn.number > WARM_UP]
    recent = [turn for turn in every if turn.began >= began]
    turns = recent if len(recent) >= ENOUGH else every
    if len(turns) < FEWEST:
        return None
    longest_first = sorted(turns, key=lambda turn: turn.delay, reverse=True)
    paused = sum(turn.delay for turn in longest_first[:PAUSES])
    length = max(1, turns[-1].began - turns[0].began - paused)
    turns = longest_first[PAUSES:]
    waited: Counter[RankId] = Counter()
    for turn in turns:
        waited[turn.last] += turn.delay
    (rank, longest), *others = waited.most_common(2)
    notable = _notable(turns, rank, longest)
    own = [turn for turn in notable if turn.last == rank]
    alone = all(longest >= AS_MUCH_AS_NEXT * other for _, other in others)
    chance = _chance(len(own), len(notable), len(group.timelines))
    if not alone or chance > BY_CHANCE:
        return None
    found = Pacing(group, rank, len(notable), own, length)
    is_slow = found.share >= LEAST_OF_TIME and found.last_in >= LEAST_LAST
    return found if is_slow else None


def turns_of(group: Group) -> list[Turn]:
    """Return whom each collective of a group has waited for, in order."""
    found: list[Turn] = []
    before: Mapping[RankId, Call] = {}
    held: Counter[RankId] = Counter()
    bursts = {rank: _bursts(timeline) for rank, timeline in group.timelines.items()}
    for calls in group.collectives():
        last = max(calls, key=lambda rank: calls[rank].began - held[rank])
        at, number = calls[last].began, calls[last].number
        waits = {rank: _wait(call, at) for rank, call in calls.items() if rank != last}
        behind = max(0, int(median(waits.values())) - group.timelines[last].slack)
        continued = found and found[-1].last == last
        if continued and (number in bursts[last] or _overlap(before, calls, last)):
            found.append(Turn(number, last, behind, max(0, behind - found[-1].behind), at))
        else:
            found.append(Turn(number, last, behind, behind, at))
        if ROOTED.fullmatch(calls[last].kind):
            # gloo's root waits for one rank while it has let others go: it is late for that rank.
            held.update(waits)
        else:
            held.clear()
        before = calls
    return found


def _wait(call: Call, until: int) -> int:
    """Return how long a rank has waited in a call for one that enters later."""
    return max(0, min(until, until if call.ended is None else call.ended) - call.began)


def _overlap(before: Mapping[RankId, Call], calls: Mapping[RankId, Call], last: RankId) -> bool:
    """Whether ranks have entered a collective before the one before was over, as DDP does."""
    at = calls[last].began
    ends = median(before[rank].ended or at for rank in calls if rank != last)
    return median(call.began for rank, call in calls.items() if rank != last) < ends


def _bursts(timeline: Timeline) -> set[int]:
    """Return the calls that the same execution of a line has made as the calls before them.

    Of short gaps no sample tells; they are such if those with samples elsewhere are much longer.
    """
    times = [at for at, *_ in timeline.samples]
    found: set[int] = set()
    unseen: list[tuple[int, int]] = []
    elsewhere: list[int] = []
    calls = [timeline.calls[number] for number in sorted(timeline.calls)]
    for before, call in pairwise(calls):
        if before.line == call.line:
            first, end = bisect_right(times, before.began), bisect_left(times, call.began)
            seen = {_line(spot) for _, spot, _ in timeline.samples[first:end]}
            gap = call.began - before.began
            if seen - {call.line}:
                elsewhere.append(gap)
            elif seen:
                found.add(call.number)
            else:
                unseen.append((gap, call.number))
    usual = median(elsewhere) if elsewhere else 0
    return found.union(number for gap, number in unseen if 2 * gap < usual)


def _line(spot: Spot) -> str:
    return f"{spot.frame.path}:{spot.frame.line} {spot.frame.function}"


def _notable(turns: Sequence[Turn], rank: RankId, waited: int) -> list[Turn]:
    """Return the turns of all ranks that are as late as those in which a rank has lost most."""
    left, usual = waited / 2, 0
    for delay in sorted((turn.delay for turn in turns if turn.last == rank), reverse=True):
        left, usual = left - delay, delay
        if left <= 0:
            break
    return [turn for turn in turns if turn.delay >= max(usual / 2, SHORTEST_US)]


def _chance(own: int, turns: int, ranks: int) -> float:
    """Return how likely one of so many ranks is last as often as that if all are alike."""
    ways = sum(comb(turns, each) * (ranks - 1) ** (turns - each) for each in range(own, turns + 1))
    return float(ranks * ways / ranks**turns)


# The place: where the rank spends more time than the others, their waits left out. Where it is
# while others wait need not be the place: who loads slowly is late in all that comes after.


class Excess(NamedTuple):
    """Where a rank has spent more time than others, and the share of that in all that it has."""

    spot: Spot
    share: float


def excess(pacing: Pacing) -> Excess | None:
    """Return where most of the time goes, None where no sample tells.

    From the first turn on: what came before is the job's start.
    """
    waits, timelines = _waits(pacing.group), pacing.group.timelines
    own, others = timelines[pacing.rank], [*timelines.values()]
    others.remove(own)
    busy = median(one.starving for one in others)
    if own.ran >= MORE_WORK * median(one.ran for one in others):
        busy = own.starving  # whoever runs for longer is interrupted more often
    begin = min(turn.began for turn in pacing.own)
    profiles = {rank: _profile(one, waits[rank], busy, begin) for rank, one in timelines.items()}
    profile = profiles.pop(pacing.rank)
    usual = [_by_cause(each) for each in profiles.values()]
    more = {
        cause: time - int(median(other[cause] for other in usual))
        for cause, time in _by_cause(profile).items()
    }
    total = sum(time for time in more.values() if time > 0)
    if not total:
        return None
    cause = max(more, key=lambda each: more[each])
    spot = max((spot for spot in profile if _cause(spot) == cause), key=lambda each: profile[each])
    return Excess(spot, more[cause] / total)


def _cause(spot: Spot) -> tuple[str, ...]:
    if spot.calls in {COLLECTION, STARVED}:
        return (spot.calls,)
    return spot.frame.path, spot.frame.function


def _by_cause(profile: Counter[Spot]) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for spot, time in profile.items():
        found[_cause(spot)] += time
    return found


def _waits(group: Group) -> dict[RankId, list[tuple[int, int]]]:
    """Return when each rank has waited for the last one of a collective."""
    found: dict[RankId, list[tuple[int, int]]] = {rank: [] for rank in group.timelines}
    for calls in group.collectives():
        at = max(call.began for call in calls.values())
        for rank, call in calls.items():
            end = call.began + _wait(call, at)
            begin = max(call.began, found[rank][-1][1] if found[rank] else call.began)
            if end > begin:
                found[rank].append((begin, end))
    return found


def _profile(
    timeline: Timeline, waits: Sequence[tuple[int, int]], busy: float, since: int
) -> Counter[Spot]:
    """Return how long a rank was where; what it lacks of a processor more than others is a place.

    `busy`: their `starving`; more work has more of that, too. `since`: from when on.
    """
    more = max(0.0, 1 - busy / timeline.starving) if timeline.starving else 0.0
    found: Counter[Spot] = Counter()
    samples = [sample for sample in timeline.samples if sample[0] >= since]
    for (begin, *_), (end, spot, starved) in pairwise(samples):
        collecting = _common(begin, end, timeline.pauses)
        left = max(0, end - begin - collecting - _common(begin, end, waits))
        without = max(0, int(more * min(starved, left)))
        found[Spot(spot.frame, COLLECTION)] += collecting
        found[Spot(spot.frame, STARVED)] += without
        found[spot] += left - without
    return found


def _common(begin: int, end: int, spans: Sequence[tuple[int, int]]) -> int:
    """Return how long any of some spans, which are in order, is inside of another."""
    total = 0
    for first, last in spans[max(0, bisect_left(spans, (begin,)) - 1) :]:
        if first >= end:
            break
        total += max(0, min(end, last) - max(begin, first))
    return total


# What is said.


def judge(paces: Mapping[RankId, Pace]) -> tuple[Verdict, dict[str, Any]]:
    """Return the verdict, and its numbers for programs."""
    groups = groups_of(paces)
    began = min((pace.began + pace.base for pace in paces.values()), default=0)
    gone = _left_the_loop(groups)
    if gone is not None:
        return gone, {}
    pacing = slowest(groups, began)
    found = None if pacing is None else excess(pacing)
    starved = found is not None and found.spot.calls == STARVED
    lacking = [group for group in groups if group.members > len(group.timelines)]
    known = next((each for each in lacking if len(turns_of(each)) >= FEWEST), None)
    if known is not None:
        return _incomplete(known), {}
    if pacing is not None:
        confined = _processors(pacing, paces)
        if not starved or confined or pacing.share >= LEAST_STARVED:
            return _slow(pacing, found, confined)
    return _nobody(groups, paces), {}


def _slow(
    pacing: Pacing, found: Excess | None, evidence: Sequence[str]
) -> tuple[Verdict, dict[str, Any]]:
    where = "" if found is None else _where(found)
    which = f"{pacing.last_in:.0%} of {pacing.waited} collectives that ranks have waited for"
    numbers = f"is last in {which}, by {_ms(pacing.delay)} ms of {_ms(pacing.period)}"
    verdict = Verdict(
        f"rank {named_ids([pacing.rank])} {numbers}{where}",
        (Suspect((pacing.rank,), (found.spot.frame,) if found else ()),),
        tuple(evidence),
        f"dap-mux console, then `cast {named_ids([pacing.rank])} where`" if found is None else "",
        "slow-rank",
    )
    return verdict, {
        "rank": named_ids([pacing.rank]),
        "lastIn": round(pacing.last_in, 3),
        "collectives": pacing.waited,
        "delay": pacing.delay / 1e6,
        "period": pacing.period / 1e6,
    }


def _where(found: Excess) -> str:
    spot, at = found.spot, place(found.spot.frame)
    said = f" in {spot.calls} at {at}" if spot.calls else f" at {at}"
    return (
        f":{said}" if found.share >= MOSTLY else f": it is slower in all that it does, most{said}"
    )


def _ms(us: int) -> str:
    return f"{us / 1000:.0f}" if us >= 10_000 else f"{us / 1000:.1f}"


def _processors(pacing: Pacing, paces: Mapping[RankId, Pace]) -> list[str]:
    own = paces[pacing.rank].processors
    others = min(paces[rank].processors for rank in pacing.group.timelines if rank != pacing.rank)
    return [f"it may use {own} of its processors, the others {others}"] if 0 < own < others else []


def _incomplete(group: Group) -> Verdict:
    known = f"{len(group.timelines)} of the {group.members} ranks of group {group.name}"
    said = f"only {known} have told when they communicate: the others may keep them waiting"
    return Verdict(said, next="dap-mux why", name="undecided")


def _nobody(groups: Sequence[Group], paces: Mapping[RankId, Pace]) -> Verdict:
    most = max((len(turns_of(group)) for group in groups), default=0)
    if most >= FEWEST + WARM_UP:
        return Verdict(f"no rank makes the others wait: {most} collectives", name="healthy")
    problems = {pace.problem: rank for rank, pace in paces.items() if pace.problem}
    told = tuple(f"rank {named_ids([rank])}: {problem}" for problem, rank in problems.items())
    said = f"the ranks have had {most} collectives in common: {FEWEST + WARM_UP} tell enough"
    return Verdict(said, (), told, "dap-mux why", "undecided")


# A rank that has left the loop makes the others wait for ever.


def _left_the_loop(groups: Sequence[Group]) -> Verdict | None:
    """Return the verdict on a rank that waits elsewhere than the others, who wait in their loop."""
    for group in groups:
        stuck = {rank: one.newest for rank, one in group.timelines.items() if _is_stuck(one)}
        for rank, call in stuck.items():
            there = [one for one in stuck if stuck[one][:3] == call[:3]]
            elsewhere = [one for one in group.timelines if one not in there]
            if len(elsewhere) == 1 and _rounds(group, elsewhere[0], call) and rank == there[0]:
                away = next((at for one in groups if (at := _away(one, elsewhere[0], call))), None)
                if away is not None:
                    return _left(group, elsewhere[0], call, away)
    return None


def _is_stuck(timeline: Timeline) -> bool:
    newest = timeline.newest
    return newest.ended is None and timeline.end - newest.began >= STUCK_US


def _rounds(group: Group, rank: RankId, call: Call) -> int:
    """Return how often a rank has made this call before."""
    calls = group.timelines[rank].calls.values()
    return sum(each.line == call.line and each.kind == call.kind for each in calls)


def _away(group: Group, rank: RankId, call: Call) -> Call | None:
    """Return the call that a rank is stuck in, unless it has made it before, as in a loop."""
    timeline = group.timelines.get(rank)
    if timeline is None or not _is_stuck(timeline) or timeline.newest.line == call.line:
        return None
    newest = timeline.newest
    return newest if _rounds(group, rank, newest) == 1 else None


def _left(group: Group, rank: RankId, call: Call, away: Call) -> Verdict:
    """Say it; who has told its first calls is known by numbers."""
    calls = group.timelines[rank].calls
    done = (
        f"after {_rounds(group, rank, call)} calls" if min(calls) == 1 else "while the others are"
    )
    others = [one for one in group.timelines if one != rank]
    return Verdict(
        f"rank {named_ids([rank])} has left the loop {done} of {_at(call)}: "
        f"it waits in {_at(away)}",
        (Suspect((rank,), (_frame(away.line),), away.kind),),
        (f"rank set {named_ids(others)} waits in {call.kind} number {call.number}",),
        "dap-mux why",
        "not-joined",
    )


def _at(call: Call) -> str:
    return f"{call.kind} at {place(_frame(call.line))}"


def _frame(line: str) -> Frame:
    """Return the frame of `path:line function`."""
    where, _, function = line.rpartition(" ")
    path, _, number = where.rpartition(":")
    return Frame(path, function, int(number) if number.isdecimal() else 0)
