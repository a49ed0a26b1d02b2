"""Trains with equal work on all ranks, which takes a little more here or there by chance."""

from __future__ import annotations

import random
import time

import torch
from common import Deadline, arguments, blobs, finish, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

READ = 0.01  # s, on average


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 32)
        self.head = nn.Linear(32, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


class Reader:
    """Batches from a disk that is now faster, now slower."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.chance = random.Random(rank)

    def read(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(READ * self.chance.uniform(0.7, 1.3))
        return blobs(self.rank, step)


def main() -> None:
    seconds = arguments().seconds
    rank, _ = start()
    reader = Reader(rank)
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    deadline, step = Deadline(seconds), 0
    while not deadline.over():
        inputs, labels = reader.read(step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    if rank == 0:
        print(f"{step} steps", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
