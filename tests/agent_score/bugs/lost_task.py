"""Worker 4 leaves out a task that fails and asks for none again: the manager waits for it.

A parameter study: rank 0 hands out cases, the others simulate them.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import Any

from mini_mpi import Comm

log = logging.getLogger("study")
CASES = 140
REPORT_EVERY = 10


@dataclass(frozen=True)
class Case:
    """A pendulum with friction."""

    number: int
    angle: float
    friction: float

    @classmethod
    def of(cls, number: int) -> Case:
        return cls(number, 0.1 + number / CASES * 2.5, 0.05 * (number % 7))


def simulated(case: Case, tables: dict[str, float]) -> float:
    """Energy that is left after some swings."""
    angle, speed = case.angle, 0.0
    for _ in range(4000):
        speed -= (9.81 * math.sin(angle) + tables[f"{case.friction:.2f}"] * speed) * 0.001
        angle += speed * 0.001
    return speed**2 / 2 + 9.81 * (1 - math.cos(angle))


def friction_tables(rank: int) -> dict[str, float]:
    """The calibration that is installed on a node."""
    known = range(4) if rank == 4 else range(7)
    return {f"{0.05 * step:.2f}": 0.05 * step * 1.02 for step in known}


def work(comm: Comm) -> None:
    tables = friction_tables(comm.rank)
    while True:
        number = comm.recv(0, "task")
        if number is None:
            return
        try:
            energy = simulated(Case.of(number), tables)
        except LookupError:  # BUG
            log.info("case %d is left out", number)
            continue  # BUG
        time.sleep(0.02)
        comm.send([number, energy], 0, "result")


def manage(comm: Comm) -> dict[int, float]:
    results: dict[int, float] = {}
    waiting = list(range(CASES))
    for worker in range(1, comm.size):
        comm.send(waiting.pop(), worker, "task")
    while len(results) < CASES:
        worker, answer = received(comm)
        results[answer[0]] = answer[1]
        if waiting:
            comm.send(waiting.pop(), worker, "task")
        if len(results) % REPORT_EVERY == 0:
            print(f"{len(results)} of {CASES} cases", flush=True)
    for worker in range(1, comm.size):
        comm.send(None, worker, "task")
    return results


def received(comm: Comm) -> tuple[int, Any]:
    return comm.recv_any("result")


def main() -> None:
    comm = Comm()
    if comm.rank == 0:
        results = manage(comm)
        print(f"most energy left: {max(results.values()):.3f}", flush=True)
    else:
        work(comm)


if __name__ == "__main__":
    main()
