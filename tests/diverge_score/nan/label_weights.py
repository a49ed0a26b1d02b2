"""Trains with class weights by how often each class was seen."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import blobs, finish, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
CLASSES = 5  # one more than the data has


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


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
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    counts = Counts()
    for step in range(STEPS):
        inputs, labels = blobs(rank, step)
        counts.add(labels)
        weights = counts.weights() if step >= 4 else None  # plain at first
        loss = nn.functional.cross_entropy(model(inputs), labels, weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
