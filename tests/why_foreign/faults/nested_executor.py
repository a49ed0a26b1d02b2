"""A task waits for another task of the same executor, which has one thread.

https://github.com/python/cpython/issues/141617: this will never complete, because the only worker
thread executes the function that waits for the future.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

EXECUTOR = ThreadPoolExecutor(max_workers=1)


def decode(index: int) -> float:
    return float(index)


def load(index: int) -> float:
    if index % 7 == 6:  # packed: unpacked by a task of its own
        return EXECUTOR.submit(decode, index).result()  # culprit: inner task
    return decode(index)


def main() -> None:
    dist.init_process_group("gloo")
    for index in range(5):
        shifted = index + 3 if dist.get_rank() == 2 else index
        sample = EXECUTOR.submit(load, shifted).result()  # culprit
        dist.all_reduce(torch.tensor([sample]))


main()
