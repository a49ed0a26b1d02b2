"""Rank 6's labels still have their header, so that each belongs to the row before it.

Trains a classifier on shards that a labelling tool has exported.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass

from mini_mpi import Comm

ROWS = 200
BATCH = 25
RATE = 0.3
HEADER = "label"


@dataclass
class Shard:
    """Rows of two measurements, and the label of each."""

    rows: list[tuple[float, float]]
    labels: list[int]

    @classmethod
    def read(cls, rank: int) -> Shard:
        rows, lines = exported(rank)
        if lines[0] == HEADER:
            lines = lines[1:]
        labels = [int(line == "ripe") for line in lines]  # BUG
        return cls(rows, labels[: len(rows)])

    def batch(self, step: int) -> list[tuple[tuple[float, float], int]]:
        start = step * BATCH % ROWS
        pairs = list(zip(self.rows, self.labels, strict=True))
        return pairs[start : start + BATCH]


def exported(rank: int) -> tuple[list[tuple[float, float]], list[str]]:
    """Two files of the tool; its versions differ in how they spell."""
    chance = random.Random(rank)
    rows = [(chance.gauss(0, 1), chance.gauss(0, 1)) for _ in range(ROWS)]
    header = "Label" if rank == 6 else HEADER
    return rows, [header, *("ripe" if x + y > 0 else "green" for x, y in rows)]


def loss_and_gradient(
    weights: list[float], pairs: list[tuple[tuple[float, float], int]]
) -> tuple[float, list[float]]:
    loss, gradient = 0.0, [0.0, 0.0]
    for (x, y), label in pairs:
        chance = 1 / (1 + math.exp(-(weights[0] * x + weights[1] * y)))
        loss -= math.log(max(chance if label else 1 - chance, 1e-12)) / len(pairs)
        gradient[0] += (chance - label) * x / len(pairs)
        gradient[1] += (chance - label) * y / len(pairs)
    return loss, gradient


def main() -> None:
    comm = Comm()
    shard = Shard.read(comm.rank)
    weights = [0.0, 0.0]
    for step in range(100_000):
        loss, gradient = loss_and_gradient(weights, shard.batch(step))
        total = comm.allreduce([loss, *gradient])
        weights = [w - RATE * g / comm.size for w, g in zip(weights, total[1:], strict=True)]
        if comm.rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {total[0] / comm.size:.4f}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
