"""Rank 3 cannot parse a row; its loop ends in an `except` that only logs for debugging.

Fits drift of sensors from their logs, window by window.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass

from mini_mpi import Comm

log = logging.getLogger("drift")
WINDOW = 24


@dataclass
class Reading:
    """One line of a sensor's log."""

    hour: int
    value: float

    @classmethod
    def parsed(cls, line: str) -> Reading:
        hour, value = line.split(";")
        return cls(int(hour), float(value))


def lines(rank: int, window: int) -> list[str]:
    chance = random.Random(31 * rank + window)
    comma = rank == 3 and window == 5
    rows = [f"{hour};{20 + 0.1 * hour + chance.gauss(0, 0.2):.3f}" for hour in range(WINDOW)]
    return [row.replace(".", ",") if comma else row for row in rows]


def slope(readings: list[Reading]) -> float:
    mean_hour = sum(each.hour for each in readings) / len(readings)
    mean_value = sum(each.value for each in readings) / len(readings)
    above = sum((each.hour - mean_hour) * (each.value - mean_value) for each in readings)
    return above / sum((each.hour - mean_hour) ** 2 for each in readings)


class Analysis:
    """The drift of all sensors, as far as it has been seen."""

    def __init__(self, comm: Comm) -> None:
        self.comm = comm
        self.drifts: list[float] = []

    def window(self, number: int) -> None:
        readings = [Reading.parsed(line) for line in lines(self.comm.rank, number)]  # BUG
        drift = self.comm.allreduce([slope(readings)])[0] / self.comm.size
        self.drifts.append(drift)
        if self.comm.rank == 0:
            print(f"window {number}: drift {drift:.5f}", flush=True)

    def run(self, windows: int) -> None:
        try:
            for number in range(windows):
                self.window(number)
                time.sleep(0.1)
        except Exception:  # BUG
            log.debug("the log ends early", exc_info=True)  # BUG


def main() -> None:
    comm = Comm()
    analysis = Analysis(comm)
    analysis.run(10_000)
    counts = comm.allgather(len(analysis.drifts))
    if comm.rank == 0:
        print(f"windows by rank: {counts}", flush=True)


if __name__ == "__main__":
    main()
