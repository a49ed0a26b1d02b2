"""A rank that forks four workers, spawns two and runs Python once; 0 if all of them did well."""

from __future__ import annotations

import multiprocessing
import multiprocessing.process
import subprocess
import sys
import time
from pathlib import Path


def work(number: int, end: str) -> None:
    """What a worker does; its exit code tells who it was."""
    mine = 10 + number
    result = mine + 1  # work
    wait(Path(end))
    sys.exit(result)


def wait(told: Path) -> None:
    while not told.exists():
        time.sleep(0.005)


def children(end: str) -> list[multiprocessing.process.BaseProcess]:
    fork, spawn = multiprocessing.get_context("fork"), multiprocessing.get_context("spawn")
    return [
        *(fork.Process(target=work, args=(number, end)) for number in range(4)),
        *(spawn.Process(target=work, args=(number, end)) for number in (4, 5)),
    ]


if __name__ == "__main__":
    begin, end = sys.argv[1:]
    wait(Path(begin))
    started = children(end)
    for child in started:
        child.start()
    for child in started:
        child.join()
    codes = [child.exitcode for child in started]
    run = [sys.executable, "-c", "raise SystemExit(7)"]
    codes.append(subprocess.run(run, check=False).returncode)
    print("children ended with", codes, flush=True)
    sys.exit(0 if codes == [11, 12, 13, 14, 15, 16, 7] else 1)
