"""Ranks wait for each other, or for a lock, a disk or a loader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from dap_mux.pure.insight.stack_tree import Frame, Stack
from dap_mux.pure.insight.why.evidence import Sample, Thread
from dap_mux.pure.insight.why.graph import WaitGraph, graph_of, operation
from dap_mux.pure.insight.why.picture import IDLE, Doing, Picture, same_wait
from dap_mux.pure.insight.why.verdict import (
    DISK,
    Verdict,
    busy_with,
    has_not_reached,
    in_the_kernel,
    its_children,
    look_at,
    place,
    ranks,
    suspects,
    verb,
    who_waits,
)
from dap_mux.pure.insight.why.waits import JOINS, NETWORK_CALLS, PORT, SENDS, Wait, plain

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
    groups: dict[str, list[Doing]] = {}
    for one in picture.waiting:
        if one.wait is not None and one.wait.collective:
            groups.setdefault(one.wait.group, []).append(one)
    found = (_in_a_group(members, graph, picture) for members in groups.values())
    return next(filter(None, found), None) or _in_a_circle(graph, picture) or _by_place(picture)


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
    calls: dict[tuple[str, str, int], list[Doing]] = {}
    for one in picture.waiting:
        if (of := one.wait) is not None:
            calls.setdefault((of.plain, of.group, of.number), []).append(one)
    for members in calls.values():
        for name in dict.fromkeys(name for one in members for name in _agreed(one)):
            told = [one for one in members if name in _agreed(one)]
            parted = _parted(told, lambda wait, name=name: wait.agreed[name])  # type: ignore[misc]
            behind = [one for one in told if one.wait and one.wait.calls_itself > 0]
            all_join = name == PORT and len(members) == len(picture.live)
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
    by_number: dict[int, list[Doing]] = {}
    for one in picture.waiting:
        if one.wait is not None and one.wait.calls_itself >= 0:
            by_number.setdefault(one.wait.calls_itself, []).append(one)
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


def _by_place(picture: Picture) -> Verdict | None:
    """All ranks wait, and a few of them at another place than most, as is not known more closely.

    Each of them is in a collective without a number, or waits for a key in the store.
    """
    waiting = picture.waiting
    waits = [one.wait for one in waiting if one.wait is not None]
    if len(waiting) < len(picture.live) or not all(wait.by_place for wait in waits):
        return None
    places = Counter(wait.called_at for wait in waits).most_common(2)
    most, count = places[0] if places else ((), 0)
    if len(places) < 2 or count == places[1][1]:
        return None
    few = [one for one in waiting if one.wait is not None and one.wait.called_at != most]
    words = f"{few[0].wait}{_calling(few[0])} at {place(few[0].place)}"
    return _verdict(f"{verb(few, 'waits', 'wait')} in {words}", few, waiting, picture)


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


LOADERS = ("torch/utils/data/dataloader.py", "queue.py", "multiprocessing/queues.py")
TAKES = frozenset({"get", "_get_data", "_try_get_data", "_next_data"})


def input_starved(picture: Picture) -> Verdict | None:
    """A rank waits for data that its own loader does not bring.

    It counts if others wait for that rank.
    """
    starved = [one for one in picture.elsewhere if (one.steady or one.polls) and _takes(one)]
    if not starved or not picture.waiting:
        return None
    busy = (text for one in starved[:1] if one.samples for text in _loaders(one.samples[-1]))
    return Verdict(
        f"{ranks(starved)} {'waits' if len(starved) == 1 else 'wait'} for data at"
        f" {place(starved[0].place)}, which the loader does not bring",
        suspects(starved, picture),
        (*busy, *its_children(starved[0]), *has_not_reached(starved, picture)),
        f"dap-mux stacks {starved[0].rank[1]} --threads all",
    )


def _takes(one: Doing) -> bool:
    return any(frame.path.endswith(LOADERS) and frame.function in TAKES for frame in one.stack)


def _loaders(sample: Sample) -> list[str]:
    return [
        f"its thread {thread.name} is {in_the_kernel(thread)}"
        for thread in sample.threads
        if not thread.main and in_the_kernel(thread) and _is_at_a_file(thread)
    ]


def _is_at_a_file(thread: Thread) -> bool:
    return bool(thread.file) and not thread.file.startswith("socket:")


def not_joined(picture: Picture) -> Verdict | None:
    """A rank does not take part in what the others wait for, and does not move.

    It stands still without work to do; who works may still come.

    But where the others wait in the call that all ranks begin with, any rank that is not in it is
    named: they have not begun.
    """
    begins = same_wait(picture.waiting)
    have_not_begun = begins is not None and begins.kind == JOINS
    absent = [one for one in picture.elsewhere if have_not_begun or one.stands]
    polling = [one for one in picture.elsewhere if one.polls and one not in absent]
    if len(absent) + len(polling) == len(picture.elsewhere) and not picture.awaits_results:
        absent = [*absent, *_apart(polling, absent, picture)]
    if not absent or not picture.waiting:
        return None
    return Verdict(
        f"{ranks(absent)} {'stands' if len(absent) == 1 else 'stand'} at"
        f" {place(absent[0].place)}{_calling(absent[0])}, and the others wait",
        suspects(absent, picture),
        (*its_children(absent[0]), *has_not_reached(absent, picture)),
        look_at(absent),
    )


def _apart(polling: Sequence[Doing], absent: Sequence[Doing], picture: Picture) -> list[Doing]:
    """Those that have parted from the waiting ones as early as any: others are in the same call."""
    shared = {one.rank: _shared(one, picture) for one in (*polling, *absent)}
    return [one for one in polling if shared[one.rank] == min(shared.values())]


def _shared(one: Doing, picture: Picture) -> int:
    """How many of the outermost frames it has in common with a rank that waits."""
    return max((_in_common(one.stack, other.stack) for other in picture.waiting), default=0)


def _in_common(left: Stack, right: Stack) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))


def _calling(one: Doing) -> str:
    return f" in {one.call.text}" if one.call and one.call.text else ""


def slow_rank(picture: Picture) -> Verdict | None:
    """A rank is at work, and the others wait for it all the time.

    Nobody else moves meanwhile. A rank that counts on and sleeps in between is in no hurry.
    """
    slow = [one for one in picture.elsewhere if one.moves and not (one.counts and one.busy < IDLE)]
    if not slow or not picture.waiting or len(slow) + len(picture.waiting) < len(picture.live):
        return None
    if len(slow) >= len(picture.waiting) or picture.moves or picture.awaits_results:
        return None
    where = ", ".join(dict.fromkeys(place(frame) for frame in _lines(slow[0].stacks)))
    return Verdict(
        f"{ranks(slow)} {'is' if len(slow) == 1 else 'are'} at work at {where}; the others wait",
        suspects(slow, picture),
        (*busy_with(slow[0]), *has_not_reached(slow, picture)),
        f"py-spy top, or dap-mux stacks {slow[0].rank[1]}",
    )


def _lines(stacks: Iterable[Stack]) -> Iterator[Frame]:
    for stack in stacks:
        own = [frame for frame in stack if not frame.library]
        if own:
            yield own[-1]


def lock_cycle(picture: Picture) -> Verdict | None:
    """Threads of one rank wait for locks that the others of them have.

    The same cycle must be there in every sample.
    """
    for one in picture.live:
        cycles = [_cycle(sample.threads) for sample in one.samples]
        if len(cycles) > 1 and cycles[-1] and len(set(map(frozenset, cycles))) == 1:
            return _deadlock(one, cycles[-1], picture)
    return None


def _cycle(threads: list[Thread]) -> tuple[str, ...]:
    """Return the names of the threads in a cycle, each waits for the next; () for none."""
    holders = {lock: thread.name for thread in threads for lock in thread.holds}
    waits: dict[str, str] = {}
    for thread in threads:
        owner = thread.owner or holders.get(thread.lock, "")
        if thread.lock and owner:
            waits[thread.name] = owner
    for start in waits:
        seen = [start]
        while (following := waits.get(seen[-1])) is not None:
            if following in seen:
                return tuple(seen[seen.index(following) :])
            seen.append(following)
    return ()


def _deadlock(one: Doing, cycle: tuple[str, ...], picture: Picture) -> Verdict:
    if len(cycle) == 1:
        how = f"thread {cycle[0]} waits for a lock that it has itself"
    else:
        pairs = zip(cycle, (*cycle[1:], cycle[0]), strict=True)
        how = "; ".join(f"{waiter} waits for a lock of {owner}" for waiter, owner in pairs)
    return Verdict(
        f"threads of {ranks([one])} wait for each other's locks: {how}",
        suspects([one], picture),
        has_not_reached([one], picture),
        f"{look_at([one])}; or dap-mux stacks {one.rank[1]} --threads all",
    )


LOCK_CALLS = frozenset({"fcntl", "flock"})
FILE_CALLS = frozenset({
    "fcntl", "fdatasync", "flock", "fsync", "open", "openat", "pread64", "preadv", "pwrite64",
    "read", "readv", "write", "writev",
})  # fmt: skip


def blocked_io(picture: Picture) -> Verdict | None:
    """A rank waits for a disk or a file.

    It counts if it has been there all the time, and keeps others waiting, or all are there.
    """
    blocked = [one for one in picture.elsewhere if one.steady and all(map(_blocked, one.threads))]
    if not blocked or not (picture.waiting or len(blocked) == len(picture.live)):
        return None
    first = blocked[0].thread
    assert first is not None
    if (holders := _may_have_the_lock(blocked, picture)) and len(holders) <= len(blocked):
        return _has_the_lock(holders, blocked, picture)
    return Verdict(
        f"{ranks(blocked)} {_does(blocked[0], first)} at {place(blocked[0].place)}",
        suspects(blocked, picture),
        (
            f"it is {in_the_kernel(first)}",
            *its_children(blocked[0]),
            *has_not_reached(blocked, picture),
        ),
        f"{look_at(blocked)}; or cast {blocked[0].rank[1]} w",
    )


def _may_have_the_lock(blocked: list[Doing], picture: Picture) -> list[Doing]:
    """Return the ranks that stand for reasons of their own, while the others want a file's lock."""
    if not all(one.thread and one.thread.system_call in LOCK_CALLS for one in blocked):
        return []
    others = [one for one in picture.live if one not in blocked]
    waits = [one.wait for one in others if one.wait is not None]
    for_ranks = any(wait.collective for wait in waits) or any(map(picture.peer, others))
    return [] if for_ranks or any(one.moves for one in others) else others


def _has_the_lock(holders: list[Doing], blocked: list[Doing], picture: Picture) -> Verdict:
    """Those that do not wait for a file's lock may have it, and stand: they come before the others.

    Who has it, the system says only of processes that its asker may see.
    """
    stand, file = holders[0], blocked[0].thread.file if blocked[0].thread else ""
    return Verdict(
        f"{ranks(holders)} {verb(holders, 'stands', 'stand')} at {place(stand.place)}"
        f"{_calling(stand)}, and {ranks(blocked)} {verb(blocked, 'waits', 'wait')} for the lock of"
        f" {file or 'a file'}, which {verb(holders, 'it holds', 'they hold')}, or no rank does",
        suspects(holders, picture),
        has_not_reached(holders, picture),
        look_at(holders),
    )


def _blocked(thread: Thread) -> bool:
    if thread.state == DISK:
        return True
    return thread.system_call in FILE_CALLS | NETWORK_CALLS


def _does(one: Doing, thread: Thread) -> str:
    call = thread.system_call
    if call in NETWORK_CALLS:
        end = one.other_end(thread.file)
        return f"waits for {end}, which is no rank," if end else "waits for a connection"
    doing = {"openat": "opens", "open": "opens", "write": "writes"}.get(call, "reads")
    named = one.call.arguments.get("0") or one.call.of.get("name") if one.call else ""
    return f"{doing} {thread.file or named or 'a file'}"
