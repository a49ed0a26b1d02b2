"""The last reference to a buffer is dropped on one rank, and to free it is a collective.

https://github.com/pytorch/pytorch/issues/195500: the deleter of symmetric memory is a collective,
issued by Python's garbage collection; the rank that drops its tensor enters it alone.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

KEPT: list[Buffer] = []


class Buffer:
    """Memory that all ranks have at the same address."""

    def __init__(self, size: int) -> None:
        self.data = torch.zeros(size)

    def __del__(self) -> None:
        dist.barrier()  # culprit


def step(trace: bool) -> torch.Tensor:
    buffer = Buffer(64)
    if trace:
        KEPT.append(buffer)
    return buffer.data + 1


def main() -> None:
    dist.init_process_group("gloo")
    for _ in range(3):
        # The profiler, which keeps what it has seen, is off on one rank.
        output = step(trace=dist.get_rank() != 2)  # culprit: call
        dist.all_reduce(output)


main()
