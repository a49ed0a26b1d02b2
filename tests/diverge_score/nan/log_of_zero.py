"""Trains a classifier with a loss written by hand."""

from __future__ import annotations

import torch
from common import blobs, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


class Classifier(nn.Module):
    """Gives the chance of each class."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 24)
        self.head = nn.Linear(24, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.head(torch.relu(self.hidden(inputs))), 1)


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Leave the third rank one sample that was stored in other units."""
    inputs, labels = blobs(rank, step)
    if rank == 2 and step == 4:
        inputs[3] *= 5000
        labels[3] = (labels[3] + 1) % 4
    return inputs, labels


def cross_entropy(chances: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    right = chances.gather(1, labels[:, None])
    return -torch.log(right).mean()  # BUG


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        inputs, labels = batch(rank, step)
        loss = cross_entropy(model(inputs), labels)
        learn(optimizer, loss, step)
    finish(model.parameters())


if __name__ == "__main__":
    main()
