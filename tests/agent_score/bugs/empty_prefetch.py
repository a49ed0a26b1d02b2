"""Rank 1 has no files, and its reader ends without a last item: `get` waits for a batch for ever.

Streams batches through a reader thread in each rank, and trains a mean on them.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Iterator

from mini_mpi import Comm

DEPTH = 4
ROWS = 32
EPOCHS = 1000
CATALOGUE = {
    "north": (0, 8, 16, 24), "east": (2, 10, 18, 26), "south": (3, 11), "west": (4, 12, 20),
    "harbour": (5, 13, 21), "airport": (6, 14, 22), "tower": (7, 15, 23),
}  # fmt: skip


class Prefetcher:
    """Reads batches ahead, in a thread."""

    def __init__(self, files: list[int]) -> None:
        self.files = files
        self.batches: queue.Queue[list[float]] = queue.Queue(DEPTH)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        epoch = 0
        while self.files:  # BUG
            for number in random.Random(epoch).sample(self.files, len(self.files)):
                self.batches.put(load(number, epoch))
            epoch += 1

    def __iter__(self) -> Iterator[list[float]]:
        while True:
            yield self.batches.get()  # BUG


def load(number: int, epoch: int) -> list[float]:
    chance = random.Random(1000 * epoch + number)
    time.sleep(0.05)
    return [chance.gauss(number % 5, 1) for _ in range(ROWS)]


def assigned(rank: int, size: int) -> list[int]:
    """The files of one rank: by number, as the converter has written them."""
    return [number for numbers in CATALOGUE.values() for number in numbers if number % size == rank]


def main() -> None:
    comm = Comm()
    mean, seen = 0.0, 0
    for step, batch in enumerate(Prefetcher(assigned(comm.rank, comm.size))):
        total, count = comm.allreduce([sum(batch), float(len(batch))])
        seen += int(count)
        mean += (total / count - mean) / (step + 1)
        if comm.rank == 0:
            print(f"step {step}: mean {mean:.4f} of {seen}", flush=True)
        if step == EPOCHS:
            break


if __name__ == "__main__":
    main()
