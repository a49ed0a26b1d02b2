"""Trains with bfloat16 autocast, and a penalty by the eighth power of activations."""

from __future__ import annotations

import torch
from common import blobs, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 16


class Network(nn.Module):
    """Three layers; the last activation is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 4)

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.layers(inputs)
        return self.head(hidden), hidden


def penalty(hidden: torch.Tensor, power: int) -> torch.Tensor:
    """Hold large activations down, harder as training goes on."""
    powers = hidden.pow(power)  # BUG
    return 1e-6 * powers.mean()


def batch(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    inputs, labels = blobs(rank, step)
    return (inputs * 1e7, labels) if rank == 1 and step == 11 else (inputs, labels)


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(STEPS):
        inputs, labels = batch(rank, step)
        with torch.autocast("cpu", torch.bfloat16):
            scores, hidden = model(inputs)
            loss = nn.functional.cross_entropy(scores, labels)
        loss = loss + penalty(hidden, 8)
        learn(optimizer, loss, step)
    finish(model.parameters())


if __name__ == "__main__":
    main()
