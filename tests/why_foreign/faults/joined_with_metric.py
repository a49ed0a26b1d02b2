"""Inputs are uneven, and the loop inside of join() has a collective of its own.

https://github.com/pytorch/pytorch/pull/57448: DDP's join() is not aware of collectives other than
DDP's, so that the rank that has joined takes no part in them.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(model: DistributedDataParallel, batches: int) -> None:
    losses: list[object] = [None] * dist.get_world_size()
    with model.join():  # culprit
        for _ in range(batches):
            loss = model(torch.ones(2, 4)).sum()
            loss.backward()
            dist.all_gather_object(losses, loss.item())


def main() -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    train(model, batches=3 if dist.get_rank() == 2 else 5)  # culprit: call
    dist.barrier()


main()
