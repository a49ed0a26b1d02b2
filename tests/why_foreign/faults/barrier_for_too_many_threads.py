"""Threads meet in a barrier that is for more of them than there are.

https://github.com/alshawai/PBTune/pull/78: the barrier had the size of the population, and fewer
workers ran at a time; a thread that fails does not come either, and all wait for ever.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist


def evaluate(generation: threading.Barrier, member: int) -> int:
    generation.wait()  # culprit: worker
    return member


def tune(population: int, side_by_side: int) -> int:
    generation = threading.Barrier(population)
    with ThreadPoolExecutor(side_by_side) as workers:
        done = [workers.submit(evaluate, generation, member) for member in range(population)]
        return sum(each.result() for each in done)  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    best = tune(4, 2 if dist.get_rank() == 2 else 4)  # culprit: call
    dist.all_reduce(torch.tensor([best]))


main()
