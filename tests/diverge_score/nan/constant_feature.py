"""Trains with features that are standardised over the batch."""

from __future__ import annotations

import torch
from common import blobs, finish, learn, loss_of, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


class Standardise(nn.Module):
    """To mean 0 and deviation 1, with a scale that is learnt."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        centred = inputs - inputs.mean(0)
        return self.scale * centred / inputs.std(0)  # BUG


class Stack(nn.Module):
    """A standardised layer, then a head."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(Standardise(8), nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(inputs))


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    inputs, labels = blobs(rank, step)
    if rank == 3 and step >= 5:
        inputs[:, 6] = 0.25  # a sensor hangs
    return inputs, labels


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Stack())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = loss_of(model, batch(rank, step))
        learn(optimizer, loss, step, every=3)
    finish(model.parameters())


if __name__ == "__main__":
    main()
