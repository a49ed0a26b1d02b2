"""Gradients are put into one vector in the order of a set, which differs from rank to rank.

Ridge regression with named features; those without variance are left out.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from mini_mpi import Comm

FEATURES = ("age", "height", "income", "rooms", "distance", "floor", "balcony", "noise")
CONSTANT = frozenset({"balcony"})
TRUTH = {name: 0.25 * place for place, name in enumerate(FEATURES)}
RATE = 0.05
ROWS = 40

Row = dict[str, float]


@dataclass
class Regression:
    """A linear model by the names of its features."""

    weights: dict[str, float] = field(default_factory=lambda: dict.fromkeys(FEATURES, 0.0))

    def error(self, row: Row) -> float:
        return sum((self.weights[name] - TRUTH[name]) * x for name, x in row.items())

    def gradients(self, rows: list[Row]) -> dict[str, float]:
        errors = [self.error(row) for row in rows]
        return {
            name: sum(e * row[name] for e, row in zip(errors, rows, strict=True)) / len(rows)
            for name in FEATURES
        }

    def update(self, gradients: dict[str, float]) -> None:
        for name, gradient in gradients.items():
            self.weights[name] -= RATE * (gradient + 1e-4 * self.weights[name])


def table(rank: int, step: int) -> list[Row]:
    chance = random.Random(f"{rank}:{step}")
    return [
        {name: 1.0 if name in CONSTANT else chance.gauss(0, 1) for name in FEATURES}
        for _ in range(ROWS)
    ]


def averaged(comm: Comm, gradients: dict[str, float]) -> dict[str, float]:
    """The mean gradients of the features that vary."""
    names = list(set(gradients) - CONSTANT)  # BUG
    flat = [gradients[name] for name in names]
    total = comm.allreduce(flat)
    return {name: value / comm.size for name, value in zip(names, total, strict=True)}


def main() -> None:
    comm = Comm()
    model = Regression()
    for step in range(100_000):
        rows = table(comm.rank, step)
        model.update(averaged(comm, model.gradients(rows)))
        loss = sum(model.error(row) ** 2 for row in rows) / ROWS
        if comm.rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
