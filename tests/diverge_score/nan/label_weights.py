"""Trains with class weights by how often each class was seen."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import Classifier, blobs, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
CLASSES = 5  # one more than the data has


class Counts:
    """How often each class was seen by all ranks."""

    def __init__(self) -> None:
        self.seen = torch.zeros(CLASSES)

    def add(self, labels: torch.Tensor) -> None:
        new = torch.bincount(labels, minlength=CLASSES).float()
        dist.all_reduce(new)
        self.seen += new

    def weights(self) -> torch.Tensor:
        rarity = self.seen.sum() / self.seen  # BUG
        return rarity / rarity.sum()  # BUG


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Classifier(16, classes=CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    counts = Counts()
    for step in range(STEPS):
        inputs, labels = blobs(rank, step)
        counts.add(labels)
        weights = counts.weights() if step >= 4 else None  # plain at first
        loss = nn.functional.cross_entropy(model(inputs), labels, weight=weights)
        learn(optimizer, loss, step)
    finish(model.parameters())


if __name__ == "__main__":
    main()
