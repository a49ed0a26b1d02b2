"""Each rank draws its own first weights and only gradients are averaged: the models differ.

A small network, trained by data-parallel descent.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass

from mini_mpi import Comm

HIDDEN = 6
BATCH = 32
RATE = 0.1
SEED = 11

Vector = list[float]


@dataclass
class Network:
    """One hidden layer of tanh; its parameters are one vector."""

    parameters: Vector

    @classmethod
    def drawn(cls, seed: int) -> Network:
        chance = random.Random(seed)
        return cls([chance.gauss(0, 0.5) for _ in range(3 * HIDDEN)])

    def parts(self) -> tuple[Vector, Vector, Vector]:
        p = self.parameters
        return p[:HIDDEN], p[HIDDEN : 2 * HIDDEN], p[2 * HIDDEN :]

    def loss_and_gradient(self, rows: list[tuple[float, float]]) -> tuple[float, Vector]:
        weights, offsets, outs = self.parts()
        total, gradient = 0.0, [0.0] * len(self.parameters)
        for x, y in rows:
            hidden = [math.tanh(w * x + o) for w, o in zip(weights, offsets, strict=True)]
            error = sum(v * h for v, h in zip(outs, hidden, strict=True)) - y
            total += error * error / len(rows)
            for i, h in enumerate(hidden):
                inner = 2 * error * outs[i] * (1 - h * h) / len(rows)
                gradient[i] += inner * x
                gradient[HIDDEN + i] += inner
                gradient[2 * HIDDEN + i] += 2 * error * h / len(rows)
        return total, gradient

    def descend(self, gradient: Vector) -> None:
        self.parameters = [p - RATE * g for p, g in zip(self.parameters, gradient, strict=True)]


def batch(rank: int, step: int) -> list[tuple[float, float]]:
    chance = random.Random(f"{rank}.{step}")
    return [(x, math.sin(3 * x)) for x in (chance.uniform(-1, 1) for _ in range(BATCH))]


def main() -> None:
    comm = Comm()
    network = Network.drawn(SEED + comm.rank)  # BUG
    for step in range(20_000):
        loss, gradient = network.loss_and_gradient(batch(comm.rank, step))
        mean = [each / comm.size for each in comm.allreduce(gradient)]
        network.descend(mean)
        if comm.rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss:.5f}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
