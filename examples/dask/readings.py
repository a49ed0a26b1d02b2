"""A year of readings of many stations on a Dask cluster: each day's are cleaned, then summed up.

    python readings.py                            # on a LocalCluster of four workers
    python readings.py --threads                  # its workers in this very process
    python readings.py --scheduler tcp://HOST:8786

`--bad DAY` breaks the readings of that day, and its task fails; with `--keep` that task stays in
the cluster, for `dap-mux rerun`.
"""

from __future__ import annotations

import argparse
import threading
from dataclasses import dataclass

from distributed import Client, LocalCluster

STATIONS = 50
WORKERS = 4


@dataclass
class Day:
    """The readings of a day, by station; None where a station sent none."""

    number: int
    readings: list[float | None]


def load(number: int, *, broken: bool) -> Day:
    """Make up the readings of a day; a `broken` one has a text among its numbers."""
    readings: list[float | None] = [
        None if (number + station) % 7 == 0 else float(number * station % 31)
        for station in range(STATIONS)
    ]
    if broken:
        readings[3] = "n/a"  # type: ignore[call-overload]
    return Day(number, readings)


def clean(day: Day) -> list[float]:
    """Take the readings that are there."""
    present = [reading for reading in day.readings if reading is not None]
    mean = sum(present) / len(present)
    return [reading - mean for reading in present]


def spread(cleaned: list[float]) -> float:
    """How far readings are from the mean, in the mean of their squares."""
    squares = [reading * reading for reading in cleaned]
    return sum(squares) / len(squares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheduler", help="the address of a cluster that runs already")
    parser.add_argument("--threads", action="store_true", help="run the workers in this process")
    parser.add_argument("--threads-per-worker", type=int, default=1)
    parser.add_argument("--days", type=int, default=40)
    parser.add_argument("--bad", type=int, default=-1, metavar="DAY")
    parser.add_argument(
        "--keep", action="store_true", help="keep a failed job's tasks: Ctrl-C ends"
    )
    options = parser.parse_args()
    if options.scheduler:
        client = Client(options.scheduler)
    else:
        cluster = LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=options.threads_per_worker,
            processes=not options.threads,
            dashboard_address="127.0.0.1:0",
        )
        client = Client(cluster)
    with client:
        days = [
            client.submit(load, number, broken=number == options.bad, key=f"load-{number}")
            for number in range(options.days)
        ]
        cleaned = client.map(clean, days, key=[f"clean-{day}" for day in range(options.days)])
        futures = client.map(spread, cleaned)
        try:
            spreads = client.gather(futures)
        except TypeError as error:
            if options.keep:
                print(f"{type(error).__name__}: {error}", flush=True)
                threading.Event().wait()
            raise
    print(f"mean spread of {options.days} days: {sum(spreads) / len(spreads):.4f}")


if __name__ == "__main__":
    main()
