"""Trains with local steps; parameters are averaged every fourth, and differ between by design."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import Classifier, blobs, finish, learn, loss_of, start
from torch import nn

STEPS, EVERY = 16, 4


@torch.no_grad()
def average(model: nn.Module) -> None:
    for parameter in model.parameters():
        dist.all_reduce(parameter)
        parameter.div_(dist.get_world_size())


def local_step(model: nn.Module, optimizer: torch.optim.Optimizer, rank: int, step: int) -> float:
    loss = loss_of(model, blobs(rank, step))
    learn(optimizer, loss)
    return loss.item()


def main() -> None:
    rank, _ = start()
    model = Classifier(24)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        loss = local_step(model, optimizer, rank, step)
        if (step + 1) % EVERY == 0:
            average(model)
            if rank == 0:
                print(f"step {step}: loss {loss:.4f}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
