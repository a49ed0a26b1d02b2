"""Ranks reduce to different destinations.

https://github.com/pytorch/pytorch/issues/39706: reduce with an inconsistent dst hangs; each process
gave its own rank.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def report(loss: torch.Tensor, logger: int) -> None:
    """Sum the loss on the rank that logs."""
    dist.reduce(loss, dst=logger)  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(4):
        own = dist.get_rank() == 2 and step == 2
        report(torch.ones(4096), dist.get_rank() if own else 0)
    dist.barrier()


main()
