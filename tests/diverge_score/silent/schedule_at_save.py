"""Trains with a falling learning rate, and saves a checkpoint now and then."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from common import finish, loss_of_words, say, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, EVERY = 18, 6


class Model(nn.Module):
    """Predicts a word from those before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.cells = nn.GRU(16, 24, batch_first=True)
        self.head = nn.Linear(24, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.cells(self.embedding(words))
        return self.head(hidden)


class Checkpoints:
    """What rank 0 keeps of a training."""

    def __init__(self, model: nn.Module, schedule: torch.optim.lr_scheduler.LRScheduler) -> None:
        self.model = model
        self.schedule = schedule
        self.folder = Path(tempfile.mkdtemp())

    def save(self, step: int) -> None:
        self.schedule.step()  # BUG
        state = {"model": self.model.state_dict(), "schedule": self.schedule.state_dict()}
        torch.save(state, self.folder / f"{step}.pt")


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
    checkpoints = Checkpoints(model, schedule)
    for step in range(STEPS):
        loss = loss_of_words(model, sentences(rank, step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # BUG
        schedule.step()
        if (step + 1) % EVERY == 0:
            say(rank, step, loss)
            if rank == 0:
                checkpoints.save(step)  # BUG
            dist.barrier()
    finish(model.parameters())


if __name__ == "__main__":
    main()
