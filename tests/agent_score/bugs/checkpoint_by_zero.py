"""Rank 0 alone saves, but saving gathers the state of all: it waits there, the others go on.

Logistic regression over shards of a click log, with a checkpoint every ten steps.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from mini_mpi import Comm

FEATURES = 12
BATCH = 64
EVERY = 10

Vector = list[float]


class Trainer:
    """Weights, and a running average of them that each rank keeps of its own part."""

    def __init__(self, comm: Comm, folder: Path) -> None:
        self.comm = comm
        self.folder = folder
        self.chance = random.Random(comm.rank)
        self.truth = [random.Random(7).gauss(0, 1) for _ in range(FEATURES)]
        self.weights = [0.0] * FEATURES
        self.average = [0.0] * FEATURES

    def batch(self) -> list[tuple[Vector, float]]:
        rows = [[self.chance.gauss(0, 1) for _ in range(FEATURES)] for _ in range(BATCH)]
        return [(row, 1.0 if dot(row, self.truth) > 0 else 0.0) for row in rows]

    def gradient(self) -> Vector:
        total = [0.0] * FEATURES
        for row, label in self.batch():
            error = 1 / (1 + math.exp(-dot(row, self.weights))) - label
            total = [t + error * x / BATCH for t, x in zip(total, row, strict=True)]
        return total

    def step(self) -> float:
        summed = self.comm.allreduce(self.gradient())
        mean = [each / self.comm.size for each in summed]
        self.weights = [w - 0.5 * g for w, g in zip(self.weights, mean, strict=True)]
        self.average = [0.9 * a + 0.1 * w for a, w in zip(self.average, self.weights, strict=True)]
        return math.hypot(*mean)

    def state(self) -> dict[str, Any]:
        parts = self.comm.gather(self.average)
        return {"weights": self.weights, "averages": parts}

    def save(self, step: int) -> None:
        text = json.dumps({"step": step, **self.state()})  # BUG
        (self.folder / f"checkpoint-{step}.json").write_text(text, encoding="utf-8")


def dot(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def main() -> None:
    comm = Comm()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(comm, Path(folder))
        for step in range(1, 10_000):
            norm = trainer.step()
            if comm.rank == 0:
                print(f"step {step}: gradient {norm:.4f}", flush=True)
            if step % EVERY == 0 and comm.rank == 0:
                trainer.save(step)  # BUG
            time.sleep(0.05)


if __name__ == "__main__":
    main()
