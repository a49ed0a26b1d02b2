"""An exception leaves a block at whose end there is a barrier.

https://github.com/dealii/dealii/pull/14356: a lock that all ranks take together is unlocked with a
barrier while the exception of one rank unwinds its stack, and the others still talk to that rank.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class CollectiveLock:
    """One output at a time, on all ranks."""

    def __enter__(self) -> None:
        dist.barrier()

    def __exit__(self, *_exception: object) -> None:
        dist.barrier()  # culprit


def write(rows: list[float]) -> None:
    with CollectiveLock():  # culprit: block
        largest = torch.tensor([max(rows)])  # culprit: raises
        dist.all_reduce(largest, dist.ReduceOp.MAX)


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(3):
        empty = dist.get_rank() == 2 and step == 1
        write([] if empty else [1.0, float(step)])


main()
