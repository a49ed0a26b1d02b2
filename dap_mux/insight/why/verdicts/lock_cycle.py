"""Threads of one rank wait for locks that the others of them have."""

from __future__ import annotations

from dap_mux.insight.why.evidence import Thread
from dap_mux.insight.why.picture import Doing, Picture
from dap_mux.insight.why.verdict import Verdict, has_not_reached, look_at, ranks, suspects

NAME = "lock-cycle"


def find(picture: Picture) -> Verdict | None:
    """The same cycle must be there in every sample."""
    for one in picture.live:
        cycles = [_cycle(sample.threads) for sample in one.samples]
        if len(cycles) > 1 and cycles[-1] and len(set(map(frozenset, cycles))) == 1:
            return _verdict(one, cycles[-1], picture)
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


def _verdict(one: Doing, cycle: tuple[str, ...], picture: Picture) -> Verdict:
    if len(cycle) == 1:
        how = f"thread {cycle[0]} waits for a lock that it has itself"
    else:
        pairs = zip(cycle, (*cycle[1:], cycle[0]), strict=True)
        how = "; ".join(f"{waiter} waits for a lock of {owner}" for waiter, owner in pairs)
    return Verdict(
        NAME,
        f"threads of {ranks([one])} wait for each other's locks: {how}",
        suspects([one], picture),
        has_not_reached([one], picture),
        f"{look_at([one])}; or dap-mux stacks {one.rank[1]} --threads all",
    )
