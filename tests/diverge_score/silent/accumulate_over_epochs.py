"""Trains with DDP and gradient accumulation that goes on over the end of an epoch."""

from __future__ import annotations

import contextlib

import torch
from common import blobs, finish, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ACCUMULATE = 4
EPOCHS, BATCHES = 4, 14


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 4))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layers(inputs)


class Trainer:
    """A model, its optimizer, and how many micro-batches it has seen."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.model = DistributedDataParallel(Classifier())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.seen = 0

    def micro_batch(self, epoch: int, index: int) -> None:
        inputs, labels = blobs(self.rank, epoch * BATCHES + index)
        syncs = (index + 1) % ACCUMULATE == 0  # BUG
        with contextlib.nullcontext() if syncs else self.model.no_sync():  # BUG
            loss = nn.functional.cross_entropy(self.model(inputs), labels) / ACCUMULATE
            loss.backward()  # BUG
        self.seen += 1
        if self.seen % ACCUMULATE == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def epoch(self, epoch: int) -> None:
        for index in range(BATCHES):
            self.micro_batch(epoch, index)


def main() -> None:
    rank, _ = start()
    trainer = Trainer(rank)
    for epoch in range(EPOCHS):
        trainer.epoch(epoch)
        if rank == 0:
            print(f"epoch {epoch} done", flush=True)
    finish(trainer.model.parameters())


if __name__ == "__main__":
    main()
