"""Rank 2's station writes `nan` for what it could not measure; the sum of all is NaN then.

Mean temperatures of an hour over weather stations, and a forecast by smoothing.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from mini_mpi import Comm

ROWS = 60
SMOOTHING = 0.2


def report(station: int, hour: int) -> str:
    """The text that a station sends each hour: minute, temperature, wind."""
    chance = random.Random(9000 * station + hour)
    frozen = station == 2 and hour >= 3
    lines = []
    for minute in range(ROWS):
        value = f"{12 + station + chance.gauss(0, 1):.2f}"
        wind = f"{abs(chance.gauss(4, 2)):.1f}"
        if frozen and minute % 20 == 7:
            value = "nan"
        lines.append(f"{minute},{value},{wind}")
    return "\n".join(lines)


def temperatures(text: str) -> list[float]:
    return [float(line.split(",")[1]) for line in text.splitlines()]  # BUG


def winds(text: str) -> list[float]:
    return [float(line.split(",")[2]) for line in text.splitlines()]


@dataclass
class Forecast:
    """Exponential smoothing of the hourly means, from new every day."""

    level: float = 0.0
    hours: int = 0

    def update(self, value: float) -> None:
        share = SMOOTHING if self.hours else 1.0
        self.level += share * (value - self.level)
        self.hours += 1


def hourly(comm: Comm, hour: int) -> tuple[float, float]:
    """The means of temperature and wind over all stations."""
    text = report(comm.rank, hour)
    local = sum(temperatures(text)) / ROWS  # BUG
    wind = sum(winds(text)) / ROWS
    total, total_wind = comm.allreduce([local, wind])
    return total / comm.size, total_wind / comm.size


def main() -> None:
    comm = Comm()
    forecast = Forecast()
    for hour in range(20_000):
        if hour % 24 == 0:
            forecast = Forecast()
        mean, wind = hourly(comm, hour)
        forecast.update(mean)
        if comm.rank == 0:
            print(f"hour {hour}: {forecast.level:.2f} °C, {wind:.1f} m/s", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
