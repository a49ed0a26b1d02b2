"""Rank 4's table was exported without a column: KeyError there, lost connections elsewhere.

Energy balance of houses, one region a rank.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from mini_mpi import Comm

HOUSES = 20
COLUMNS = ("used", "solar", "stored", "sold")

Row = dict[str, float]


@dataclass
class Region:
    """The houses of one region and how their tables are written."""

    number: int
    columns: tuple[str, ...]

    def day(self, day: int) -> list[Row]:
        chance = random.Random(f"{self.number}/{day}")
        return [{name: chance.uniform(0, 20) for name in self.columns} for _ in range(HOUSES)]


def regions(size: int) -> list[Region]:
    """The regions, with the columns that their companies report."""
    return [
        Region(number, tuple(name for name in COLUMNS if (number, name) != (4, "stored")))
        for number in range(size)
    ]


def balance(row: Row) -> float:
    """What a house has taken from the grid."""
    produced = row["solar"] - row["sold"]
    if row["used"] > produced + 32:
        return row["used"] - produced - row["stored"]  # BUG
    return row["used"] - produced


def daily(comm: Comm, region: Region, day: int) -> list[float]:
    balances = [balance(row) for row in region.day(day)]
    return comm.allreduce([sum(balances), max(balances), float(len(balances))])


def main() -> None:
    comm = Comm()
    region = regions(comm.size)[comm.rank]
    for day in range(10_000):
        total, worst, houses = daily(comm, region, day)
        if comm.rank == 0:
            print(f"day {day}: {total / houses:.3f} kWh, worst {worst:.1f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
