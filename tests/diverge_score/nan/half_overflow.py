"""Trains a network whose middle layer computes in half precision."""

from __future__ import annotations

import torch
from common import blobs, finish, learn, loss_of, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


class HalfBlock(nn.Module):
    """Squares in half precision, to save memory."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.linear(inputs).half()
        energy = hidden.square()  # BUG
        return energy.float()


class Network(nn.Module):
    """The block between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.block = HalfBlock(16)
        self.last = nn.Linear(16, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.last(self.block(torch.relu(self.first(inputs))))


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sample harder cases, with larger values, as training goes on."""
    inputs, labels = blobs(rank, step)
    scale = 400.0 if rank == 3 and step >= 7 else 1.0
    return inputs * scale, labels


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = loss_of(model, batch(rank, step))
        learn(optimizer, loss, step)
    finish(model.parameters())


if __name__ == "__main__":
    main()
