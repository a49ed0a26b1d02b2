"""Trains on what is left of a batch after filtering."""

from __future__ import annotations

import torch
from common import blobs, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
QUALITY = {(0, 5): 0.4, (1, 8): 0.0}  # of a file, 1 elsewhere


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 20), nn.SiLU(), nn.Linear(20, 4))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layers(inputs)


def good_samples(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    inputs, labels = blobs(rank, step)
    kept = int(len(labels) * QUALITY.get((rank, step), 1.0))
    return inputs[:kept], labels[:kept]


def loss_of(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Weigh the prior of the weights by how many samples are there."""
    losses = nn.functional.cross_entropy(model(inputs), labels, reduction="sum")
    prior = sum(each.square().sum() for each in model.parameters()) / 2
    return (losses + prior) / len(labels)  # BUG


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        inputs, labels = good_samples(rank, step)
        loss = loss_of(model, inputs, labels)
        learn(optimizer, loss, step, every=4)
    finish(model.parameters())


if __name__ == "__main__":
    main()
