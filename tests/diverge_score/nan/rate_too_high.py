"""Trains a linear regression on all ranks."""

from __future__ import annotations

import torch
from common import finish, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 30
RATE = 30.0


class Regression(nn.Module):
    """A polynomial of four variables."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        features = torch.cat([inputs, inputs.square()], 1)
        return self.linear(features).squeeze(1)


def samples(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step * 8 + rank)
    inputs = torch.randn(32, 4, generator=generator)
    return inputs, inputs.sum(1) + 0.5 * inputs[:, 0].square()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, rank: int) -> None:
    for step in range(STEPS):
        inputs, target = samples(rank, step)
        loss = (model(inputs) - target).square().mean()  # BUG
        optimizer.zero_grad()
        loss.backward()  # BUG
        optimizer.step()  # BUG
        if rank == 0 and step % 3 == 0:
            print(f"step {step}: loss {loss.item():.4g}", flush=True)


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Regression())
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)  # BUG
    train(model, optimizer, rank)
    finish(model.parameters())


if __name__ == "__main__":
    main()
