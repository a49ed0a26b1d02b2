"""Trains with dropout; ranks should drop different units."""

from __future__ import annotations

import torch
from common import arguments, blobs, finish, learn, loss_of, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
SEED = 123


class Classifier(nn.Module):
    """Two layers with dropout between."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 32)
        self.dropout = nn.Dropout(0.4)
        self.head = nn.Linear(32, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.dropout(torch.relu(self.hidden(inputs)))  # BUG
        return self.head(hidden)


def seed_everything(seed: int) -> None:
    torch.manual_seed(seed)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, rank: int) -> None:
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        learn(optimizer, loss, step, every=4)


def main() -> None:
    good = arguments().good
    rank, _ = start()
    model = DistributedDataParallel(Classifier())
    seed_everything(SEED + (rank if good else 0))  # BUG
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), rank)
    finish(model.parameters())


if __name__ == "__main__":
    main()
