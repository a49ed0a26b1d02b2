"""Rank 6 logs verbosely: its main thread takes two locks in the order opposite to its writer's.

Simulated annealing, with a thread in each rank that writes the best state to disk.
"""

from __future__ import annotations

import math
import random
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from mini_mpi import Comm

CITIES = 30
VERBOSE = {6}  # ranks that somebody looks at


class Best:
    """The best tour so far, and the file that it is kept in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = threading.Lock()
        self.disk = threading.Lock()
        self.tour: list[int] = []
        self.length = math.inf

    def offer(self, tour: list[int], length: float) -> None:
        with self.state:
            if length < self.length:
                self.tour, self.length = tour[:], length

    def write_always(self) -> None:
        """Keep the file up to date; runs in a thread."""
        while True:
            with self.state:
                text = f"{self.length} {self.tour}\n"
                time.sleep(0.02)  # the disk is on the network
                with self.disk:  # BUG
                    self.path.write_text(text, encoding="utf-8")
            time.sleep(0.01)

    def log(self, step: int) -> None:
        """Add a line to the file's protocol, which has the length of that moment."""
        with self.disk, self.path.with_suffix(".log").open("a", encoding="utf-8") as log:
            with self.state:  # BUG
                length = self.length
            log.write(f"{step} {length:.3f}\n")


def length(tour: list[int], places: list[tuple[float, float]]) -> float:
    pairs = zip(tour, tour[1:] + tour[:1], strict=True)
    return sum(math.dist(places[a], places[b]) for a, b in pairs)


def neighbour(tour: list[int], chance: random.Random) -> list[int]:
    i, j = sorted(chance.sample(range(len(tour)), 2))
    return tour[:i] + tour[i:j][::-1] + tour[j:]


def main() -> None:
    comm = Comm()
    chance, shared = random.Random(comm.rank), random.Random(0)
    places = [(shared.random(), shared.random()) for _ in range(CITIES)]
    tour = list(range(CITIES))
    with TemporaryDirectory() as folder:
        best = Best(Path(folder) / "best.txt")
        threading.Thread(target=best.write_always, daemon=True).start()
        for step in range(100_000):
            for _ in range(50):
                other = neighbour(tour, chance)
                change = length(other, places) - length(tour, places)
                if change < 0 or chance.random() < math.exp(-change * (1 + step)):
                    tour = other
            best.offer(tour, length(tour, places))
            if comm.rank in VERBOSE:
                best.log(step)
            shortest = min(comm.allgather(best.length))
            if comm.rank == 0:
                print(f"step {step}: {shortest:.4f}", flush=True)


if __name__ == "__main__":
    main()
