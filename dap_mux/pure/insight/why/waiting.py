"""Verdicts about ranks that keep others waiting: by a lock, a disk, a loader, or their work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dap_mux.pure.insight.stack_tree import Frame, Stack, common
from dap_mux.pure.insight.why.evidence import Sample, Thread
from dap_mux.pure.insight.why.picture import Doing, Picture, same_wait
from dap_mux.pure.insight.why.verdict import (
    DISK,
    Verdict,
    busy_with,
    calling,
    has_not_reached,
    in_the_kernel,
    its_children,
    look_at,
    place,
    ranks,
    suspects,
    verb,
)
from dap_mux.pure.insight.why.waits import JOINS, NETWORK_CALLS

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

    But where the others wait in the call that all ranks begin with, any rank that is not in it and
    not at work is named: they have not begun.
    """
    begins = same_wait(picture.waiting)
    have_not_begun = begins is not None and begins.kind == JOINS
    absent = [
        one for one in picture.elsewhere if one.stands or (have_not_begun and not _works(one))
    ]
    polling = [one for one in picture.elsewhere if one.polls and one not in absent]
    if len(absent) + len(polling) == len(picture.elsewhere) and not picture.awaits_results:
        absent = [*absent, *_apart(polling, absent, picture)]
    if not absent or not picture.waiting:
        return None
    few = len(picture.waiting) < len(absent) == len(picture.elsewhere)
    if few and not have_not_begun and all(map(_looks, absent)):
        return _left(absent, picture)
    return Verdict(
        f"{ranks(absent)} {'stands' if len(absent) == 1 else 'stand'} at"
        f" {place(absent[0].place)}{calling(absent[0])}, and the others wait",
        suspects(absent, picture),
        (*its_children(absent[0]), *has_not_reached(absent, picture)),
        look_at(absent),
    )


def _looks(one: Doing) -> bool:
    """Whether it looks for something again and again, on one line or a few, asleep in between."""
    return one.polls or (one.stands and one.sleeps and one.naps)


def _left(polling: Sequence[Doing], picture: Picture) -> Verdict:
    """Most look for something that a few, who are in the next collective, may have left undone."""
    few = picture.waiting
    return Verdict(
        f"{ranks(few)} {verb(few, 'waits', 'wait')} in {few[0].wait} at {place(few[0].place)}; the "
        f"others poll for something at {place(polling[0].place)}{calling(polling[0])}, and have "
        f"not come to that",
        suspects((*few, *polling), picture),
        has_not_reached(polling, picture),
        look_at(polling),
    )


def _works(one: Doing) -> bool:
    """Whether it gets on by itself, as with imports before it begins."""
    return one.moves and not one.polls


def _apart(polling: Sequence[Doing], absent: Sequence[Doing], picture: Picture) -> list[Doing]:
    """Those that have parted from the waiting ones as early as any: others are in the same call."""
    shared = {one.rank: _shared(one, picture) for one in (*polling, *absent)}
    return [one for one in polling if shared[one.rank] == min(shared.values())]


def _shared(one: Doing, picture: Picture) -> int:
    """How many of the outermost frames it has in common with a rank that waits."""
    return max((len(common(one.stack, other.stack)) for other in picture.waiting), default=0)


def slow_rank(picture: Picture) -> Verdict | None:
    """A rank is at work, and the others wait for it all the time.

    No other rank moves meanwhile. A rank that counts and sleeps in between is not slow.
    """
    slow = [one for one in picture.elsewhere if one.moves and not (one.counts and one.sleeps)]
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
    for_ranks = any(wait.collective for wait in waits) and len(others) >= len(blocked)
    for_ranks = for_ranks or any(map(picture.peer, others))
    return [] if for_ranks or any(one.moves for one in others) else others


def _has_the_lock(holders: list[Doing], blocked: list[Doing], picture: Picture) -> Verdict:
    """Those that do not wait for a file's lock may have it, and stand: they come before the others.

    Who has it, the system says only of processes that its asker may see.
    """
    stand, file = holders[0], blocked[0].thread.file if blocked[0].thread else ""
    return Verdict(
        f"{ranks(holders)} {verb(holders, 'stands', 'stand')} at {place(stand.place)}"
        f"{calling(stand)}, and {ranks(blocked)} {verb(blocked, 'waits', 'wait')} for the lock of"
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
