"""New settings are sent to all ranks but the last, which goes on with its old learning rate.

Training whose settings rank 0 changes while it runs, as a tuner asks it to.
"""

from __future__ import annotations

import random
import time
from dataclasses import asdict, dataclass

from mini_mpi import Comm

SAMPLES = 40
TUNE_AT = {5: 0.2, 15: 0.1, 25: 0.05}  # step: learning rate


@dataclass
class Settings:
    """The settings that the tuner changes."""

    version: int = 0
    rate: float = 0.4


class Model:
    """y = a x + b"""

    def __init__(self) -> None:
        self.a = self.b = 0.0

    def gradient(self, rows: list[tuple[float, float]]) -> list[float]:
        errors = [(self.a * x + self.b - y, x) for x, y in rows]
        by_a = sum(2 * e * x for e, x in errors) / len(rows)
        return [by_a, sum(2 * e for e, _ in errors) / len(rows)]

    def apply(self, gradient: list[float], rate: float) -> None:
        self.a -= rate * gradient[0]
        self.b -= rate * gradient[1]


def rows(rank: int, step: int) -> list[tuple[float, float]]:
    chance = random.Random(1000 * step + rank)
    xs = [chance.uniform(-1, 1) for _ in range(SAMPLES)]
    return [(x, 1.5 * x - 0.5 + chance.gauss(0, 0.3)) for x in xs]


def publish(comm: Comm, settings: Settings) -> None:
    """Hand new settings to the other ranks."""
    for rank in range(1, comm.size - 1):  # BUG
        comm.send(asdict(settings), rank, f"settings {settings.version}")


def updated(comm: Comm, settings: Settings, step: int) -> Settings:
    """The settings for a step: those of the tuner, if it has new ones."""
    if step not in TUNE_AT:
        return settings
    version = settings.version + 1
    if comm.rank == 0:
        settings = Settings(version, TUNE_AT[step])
        publish(comm, settings)
    elif comm.rank < comm.size - 1:  # BUG
        settings = Settings(**comm.recv(0, f"settings {version}"))
    return settings


def main() -> None:
    comm = Comm()
    settings, model = Settings(), Model()
    for step in range(20_000):
        settings = updated(comm, settings, step)
        total = comm.allreduce(model.gradient(rows(comm.rank, step)))
        mean = [each / comm.size for each in total]
        model.apply(mean, settings.rate)
        if comm.rank == 0 and step % 10 == 0:
            print(f"step {step}: y = {model.a:.3f} x + {model.b:.3f}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
