"""Trains with gradients that travel as bfloat16, and are added up in float32."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import Classifier, blobs, finish, say, start
from torch import nn

STEPS = 14


class Exchange:
    """Gathers the gradients of all ranks; an average of bfloat16 would lose too much."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank = rank
        self.world = world

    def average(self, gradient: torch.Tensor) -> torch.Tensor:
        small = gradient.bfloat16()
        received = [torch.empty_like(small) for _ in range(self.world)]
        dist.all_gather(received, small)
        whole = [each.float() for each in received]
        whole[self.rank] = gradient  # BUG
        return torch.stack(whole).mean(0)  # BUG


def batch_loss(model: nn.Module, rank: int, step: int) -> torch.Tensor:
    inputs, labels = blobs(rank, step)
    return nn.functional.cross_entropy(model(inputs), labels)


def main() -> None:
    rank, world = start()
    exchange = Exchange(rank, world)
    model = Classifier(32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        loss = batch_loss(model, rank, step)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            parameter.grad = exchange.average(parameter.grad)
        optimizer.step()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
