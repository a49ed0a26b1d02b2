"""Trains with gradients that travel as bfloat16, and are added up in float32."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import blobs, finish, start
from torch import nn

STEPS = 14


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 32)
        self.head = nn.Linear(32, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


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
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        loss = batch_loss(model, rank, step)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            parameter.grad = exchange.average(parameter.grad)
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
