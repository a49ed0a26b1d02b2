"""Trains with gradients accumulated over four micro-batches, of which the last is synchronised."""

from __future__ import annotations

import contextlib

import torch
from common import Classifier, blobs, finish, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, ACCUMULATE = 12, 4


class Trainer:
    """A model and its optimizer."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.model = DistributedDataParallel(Classifier(24))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)

    def micro_batch(self, number: int) -> float:
        inputs, labels = blobs(self.rank, number)
        is_last = (number + 1) % ACCUMULATE == 0
        with contextlib.nullcontext() if is_last else self.model.no_sync():
            loss = nn.functional.cross_entropy(self.model(inputs), labels) / ACCUMULATE
            loss.backward()
        return loss.item()

    def step(self, step: int) -> float:
        self.optimizer.zero_grad()
        numbers = range(step * ACCUMULATE, (step + 1) * ACCUMULATE)
        loss = sum(self.micro_batch(number) for number in numbers)
        self.optimizer.step()
        return loss


def main() -> None:
    rank, _ = start()
    trainer = Trainer(rank)
    for step in range(STEPS):
        loss = trainer.step(step)
        if rank == 0 and step % 4 == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)
    finish(trainer.model.parameters())


if __name__ == "__main__":
    main()
