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


for line in sys.stdin:
    start = time.thread_time()
    work(int(line))
    print(time.thread_time() - start, flush=True)
