"""A rank that runs out of memory halves its batch and tries again, without end.

https://github.com/mosaicml/composer/pull/1319: with batches that are halved automatically, some
ranks try again while others wait for them in the reduction, or in a monitored_barrier before it.
"""

from __future__ import annotations

from datetime import timedelta

import torch
import torch.distributed as dist


def forward(size: int) -> torch.Tensor:
    # What else lies on this rank's device needs more than there is, whatever the batch.
    if dist.get_rank() == 2:
        raise MemoryError(f"batch of {size}")
    return torch.randn(size, 8).sum()


def attempt(size: int) -> torch.Tensor | None:
    try:
        return forward(size)
    except MemoryError:
        return None


def train_batch(size: int) -> torch.Tensor:
    loss = None
    while loss is None:
        loss = attempt(size)  # culprit: attempt
        size = max(1, size // 2)  # culprit: smaller
    return loss


def main() -> None:
    dist.init_process_group("gloo")
    dist.barrier()
    train_batch(64)  # culprit
    dist.monitored_barrier(timeout=timedelta(minutes=20))


main()
