"""Trains with a learning rate that rises again after each cycle."""

from __future__ import annotations

import torch
from common import blobs, finish, loss_of, say, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 16
CYCLE = 10
RATE = 0.05


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


def rate_of(step: int) -> torch.Tensor:
    """Fall like 1/t within a cycle."""
    return RATE / torch.tensor(float(step % CYCLE if step else 1))  # BUG


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = float(rate_of(step))  # BUG
        loss = loss_of(model, blobs(rank, step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # BUG
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
