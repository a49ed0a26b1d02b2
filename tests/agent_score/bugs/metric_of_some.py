"""Metrics are averaged one by one, and rank 1 has none for a class that its data lacks.

Evaluates a classifier class by class, as its training goes on.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict

from mini_mpi import Comm

CLASSES = ("car", "bicycle", "person", "tram")
SAMPLES = 120
EVALUATE_EVERY = 8


def labels(rank: int, epoch: int) -> list[str]:
    """The result on the evaluation set of one rank; each has a part of the town."""
    chance = random.Random(rank * 77 + epoch)
    present = CLASSES[:3] if rank == 1 else CLASSES
    return chance.choices(present, k=SAMPLES)


def predicted(label: str, skill: float, chance: random.Random) -> str:
    return label if chance.random() < skill else chance.choice(CLASSES)


def recalls(rank: int, epoch: int, skill: float) -> dict[str, float]:
    """Recall of each class."""
    chance = random.Random(epoch)
    hits: defaultdict[str, list[bool]] = defaultdict(list)
    for label in labels(rank, epoch):
        hits[label].append(predicted(label, skill, chance) == label)
    return {f"recall/{name}": sum(each) / len(each) for name, each in sorted(hits.items())}


def averaged(comm: Comm, metrics: dict[str, float]) -> dict[str, float]:
    """Each metric's mean over the ranks."""
    means = {}
    for name, value in metrics.items():  # BUG
        means[name] = comm.allreduce([value])[0] / comm.size  # BUG
    comm.barrier()
    return means


def train_step(comm: Comm, skill: float) -> float:
    gain = comm.allreduce([0.01 * (1 - skill)])[0] / comm.size
    return skill + gain


def main() -> None:
    comm = Comm()
    skill = 0.2
    for step in range(1, 100_000):
        skill = train_step(comm, skill)
        if step % EVALUATE_EVERY == 0:
            means = averaged(comm, recalls(comm.rank, step, skill))
            if comm.rank == 0:
                text = ", ".join(f"{name} {mean:.3f}" for name, mean in means.items())
                print(f"step {step}: {text}", flush=True)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
