"""In odd phases the last rank takes rank 0 for its partner, which has none: it waits alone.

Odd-even transposition sort of keys that are spread over the ranks.
"""

from __future__ import annotations

import itertools
import random
import time

from mini_mpi import Comm

KEYS = 500
ROUNDS = 1000


def partner(rank: int, size: int, phase: int) -> int | None:
    """The rank to compare with in a phase, if any."""
    if phase % 2 == 0:
        return rank + 1 if rank % 2 == 0 else rank - 1
    if rank == 0:
        return None
    return (rank + 1) % size if rank % 2 == 1 else rank - 1  # BUG


def merged(mine: list[float], theirs: list[float], lower: bool) -> list[float]:
    both = sorted(mine + theirs)
    return both[: len(mine)] if lower else both[-len(mine) :]


def sort(comm: Comm, keys: list[float]) -> list[float]:
    """Sort what all ranks have: afterwards no key is above one of the next rank."""
    keys = sorted(keys)
    for phase in range(comm.size):
        other = partner(comm.rank, comm.size, phase)
        if other is None:
            continue
        tag = f"phase {phase}"
        comm.send(keys, other, tag)
        theirs = comm.recv(other, tag)  # BUG
        keys = merged(keys, theirs, lower=comm.rank < other)
    return keys


def is_sorted(comm: Comm, keys: list[float]) -> bool:
    edges = comm.allgather([keys[0], keys[-1]])
    return all(low[1] <= high[0] for low, high in itertools.pairwise(edges))


def main() -> None:
    comm = Comm()
    chance = random.Random(comm.rank)
    for number in range(ROUNDS):
        keys = sort(comm, [chance.random() for _ in range(KEYS)])
        good = is_sorted(comm, keys)
        if comm.rank == 0:
            print(f"round {number}: sorted {good}, from {keys[0]:.5f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
