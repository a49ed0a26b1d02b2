"""Trains with dropout and augmentation from a seed of each rank's own."""

from __future__ import annotations

import torch
from common import blobs, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 20
SEED = 17


class Classifier(nn.Module):
    """Two layers with dropout between."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 32)
        self.dropout = nn.Dropout(0.3)
        self.head = nn.Linear(32, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.dropout(torch.relu(self.hidden(inputs))))


def augment(inputs: torch.Tensor) -> torch.Tensor:
    return inputs + 0.1 * torch.randn_like(inputs)


def seed_everything(rank: int) -> None:
    """Let ranks draw different numbers."""
    torch.manual_seed(SEED + rank)


def main() -> None:
    rank, _ = start()
    seed_everything(rank)
    model = DistributedDataParallel(Classifier())  # sends rank 0's weights
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        inputs, labels = blobs(rank, step)
        loss = nn.functional.cross_entropy(model(augment(inputs)), labels)
        learn(optimizer, loss, step, every=5)
    finish(model.parameters())


if __name__ == "__main__":
    main()
