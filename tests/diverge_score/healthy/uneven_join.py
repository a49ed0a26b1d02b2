"""Trains on shares of different lengths: who has finished joins in with zeros."""

from __future__ import annotations

import torch
from common import blobs, finish, learn, start
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

SHARE = {0: 18, 1: 15}  # batches
LAST = {0: 32, 1: 7}  # samples of the last batch


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 24)
        self.head = nn.Linear(24, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


def batches(rank: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    sizes = [32] * (SHARE[rank] - 1) + [LAST[rank]]
    return [blobs(rank, step, size) for step, size in enumerate(sizes)]


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]):
        for step, (inputs, labels) in enumerate(batches(rank)):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            learn(optimizer, loss, step, every=5)
    finish(model.parameters())


if __name__ == "__main__":
    main()
