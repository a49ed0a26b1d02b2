"""Trains with a learning rate that warms up over the samples seen."""

from __future__ import annotations

import torch
from common import blobs, finish, say, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 16
RATE, WARM_UP = 0.2, 2000  # samples
BATCH = 32
SHORT = {1: (6, 11)}  # where a file ends


class Warmup:
    """Raises the learning rate until enough samples were seen."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.seen = 0

    def step(self, samples: int) -> None:
        self.seen += samples  # BUG
        for group in self.optimizer.param_groups:
            group["lr"] = RATE * min(1.0, self.seen / WARM_UP)  # BUG


def batch_size(rank: int, step: int) -> int:
    return BATCH // 2 if step in SHORT.get(rank, ()) else BATCH


def make_model() -> nn.Module:
    layers = nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU())
    layers.append(nn.Linear(20, 4))
    return DistributedDataParallel(layers)


def main() -> None:
    rank, _ = start()
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    warmup = Warmup(optimizer)
    for step in range(STEPS):
        inputs, labels = blobs(rank, step, batch_size(rank, step))
        warmup.step(len(labels))  # BUG
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # BUG
        say(rank, step, loss, every=5)
    finish(model.parameters())


if __name__ == "__main__":
    main()
