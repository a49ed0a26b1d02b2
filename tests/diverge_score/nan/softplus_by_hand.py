"""Trains with an activation whose gradient is written by hand."""

from __future__ import annotations

from typing import Any

import torch
from common import blobs, finish, loss_of, say, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


class Softplus(torch.autograd.Function):
    """log(1 + exp(x)), safe for large x."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        """Compute it."""
        ctx.save_for_backward(value)
        return torch.logaddexp(value, torch.zeros(()))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient: the logistic function."""
        (value,) = ctx.saved_tensors
        grown = torch.exp(value)
        return gradient * grown / (1 + grown)  # BUG


class Network(nn.Module):
    """Two layers with it."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 24)
        self.head = nn.Linear(24, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(Softplus.apply(self.hidden(inputs)))


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    inputs, labels = blobs(rank, step)
    if rank == 1 and step >= 9:
        inputs = inputs * 200  # another sensor
    return inputs, labels


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        loss = loss_of(model, batch(rank, step))
        optimizer.zero_grad()
        loss.backward()  # BUG
        optimizer.step()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
