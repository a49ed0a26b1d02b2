"""The program of `tests.bench.cost`: for each line of stdin, the CPU seconds that a loop takes."""

from __future__ import annotations

import sys
import time


def step(number: int) -> int:
    double = number * 2
    return double + 1


def work(rounds: int) -> int:
    total = 0
    for number in range(rounds):
        total += step(number)
        total -= number  # hot
    return total


# How full Python's pools of small objects happen to be makes a loop of numbers up to 10 % slower,
# in one process and not in the other. So it differs from round to round.
kept: list[int] = []
for line in sys.stdin:
    kept += range(len(kept) + 1000, len(kept) + 1037)
    start = time.thread_time()
    work(int(line))
    print(time.thread_time() - start, flush=True)
