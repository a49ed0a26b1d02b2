"""Gradients are accumulated, and the micro-batch that should be synchronised never comes.

Trains a small classifier with gradient accumulation over four micro-batches.
"""

from __future__ import annotations

import contextlib
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

ACCUMULATE = 4
FEATURES, CLASSES, BATCH = 16, 4, 32


def build_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, CLASSES)
    )


class Batches:
    """This rank's endless batches."""

    def __init__(self, rank: int) -> None:
        self.generator = torch.Generator().manual_seed(1234 + rank)
        self.centres = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(7))

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.randint(CLASSES, (BATCH,), generator=self.generator)
        noise = torch.randn(BATCH, FEATURES, generator=self.generator)
        return self.centres[labels] + noise, labels


class Trainer:
    """One model, one optimizer, and the micro-batches between two of its steps."""

    def __init__(self, rank: int) -> None:
        self.model = DistributedDataParallel(build_model())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.criterion = torch.nn.CrossEntropyLoss()
        self.batches = Batches(rank)

    def micro_batch(self, number: int) -> float:
        inputs, labels = self.batches.next()
        is_last = number == ACCUMULATE  # BUG
        with contextlib.nullcontext() if is_last else self.model.no_sync():  # BUG
            loss = self.criterion(self.model(inputs), labels) / ACCUMULATE
            loss.backward()
        return float(loss.detach())

    def step(self) -> float:
        self.optimizer.zero_grad()
        loss = sum(self.micro_batch(number) for number in range(ACCUMULATE))
        self.optimizer.step()
        return loss


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    trainer = Trainer(rank)
    for step in range(100_000):
        loss = trainer.step()
        first = next(trainer.model.parameters())
        norm = float(first.detach().norm())
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss:.4f}, norm {norm:.4f}", flush=True)
        time.sleep(0.2)


if __name__ == "__main__":
    main()
