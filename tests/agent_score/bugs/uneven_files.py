"""The files do not divide by the ranks: the last rank has fewer, and leaves the loop first.

Word statistics of a corpus, combined after each file.
"""

from __future__ import annotations

import random
import time
from collections import Counter

from mini_mpi import Comm

FILES = 61
VOCABULARY = ["lock", "rank", "batch", "shard", "epoch", "queue", "store", "mesh"]
WORDS = 3000


def corpus() -> list[str]:
    return [f"part-{number:05}.txt" for number in range(FILES)]


def my_files(comm: Comm, files: list[str]) -> list[str]:
    """The part of the corpus that this rank reads."""
    each = -(-len(files) // comm.size)
    return files[comm.rank * each : (comm.rank + 1) * each]  # BUG


def read(name: str) -> list[str]:
    """The words of one file."""
    chance = random.Random(name)
    time.sleep(0.1)  # it is far away
    return chance.choices(VOCABULARY, k=WORDS)


def normalised(counts: list[float]) -> list[float]:
    total = sum(counts) or 1.0
    return [count / total for count in counts]


def entropy_step(previous: list[float], now: list[float]) -> float:
    """How much the distribution has moved."""
    return sum(abs(a - b) for a, b in zip(previous, now, strict=True))


def main() -> None:
    comm = Comm()
    files = my_files(comm, corpus())
    counts: Counter[str] = Counter()
    shares = [0.0] * len(VOCABULARY)
    for number, name in enumerate(files):  # BUG
        counts.update(read(name))
        everyone = comm.allreduce([float(counts[word]) for word in VOCABULARY])
        moved = entropy_step(shares, normalised(everyone))
        shares = normalised(everyone)
        if comm.rank == 0:
            print(f"{name}: {number + 1} of {len(files)}, moved {moved:.4f}", flush=True)

    rows = comm.gather([f"{word}: {counts[word]}" for word in VOCABULARY], tag="report")
    comm.barrier()
    if rows is not None:
        for rank, row in enumerate(rows):
            print(f"rank {rank} has counted {', '.join(row)}", flush=True)


if __name__ == "__main__":
    main()
