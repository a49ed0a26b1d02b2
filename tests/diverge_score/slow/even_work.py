"""Trains with equal work on all ranks, which takes a little more here or there by chance."""

from __future__ import annotations

import random
import time

import torch
from common import Classifier, arguments, blobs, finish, learn, start, until
from torch import nn
from torch.nn.parallel import DistributedDataParallel

READ = 0.01  # s, on average


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
    model = DistributedDataParallel(Classifier(32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in until(seconds):
        inputs, labels = reader.read(step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        learn(optimizer, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
