"""Trains, writes a checkpoint, and goes on from it in a new trainer."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from common import Classifier, blobs, finish, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FIRST, STEPS = 8, 18


class Trainer:
    """A model and its optimizer."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.model = DistributedDataParallel(Classifier(24))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)

    def train(self, first: int, last: int) -> None:
        for step in range(first, last):
            inputs, labels = blobs(self.rank, step)
            loss = nn.functional.cross_entropy(self.model(inputs), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()  # BUG
            if self.rank == 0:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)

    def save(self, file: Path) -> None:
        if self.rank == 0:
            state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            torch.save(state, file)
        dist.barrier()

    def load(self, file: Path) -> None:
        state = torch.load(file)
        self.model.load_state_dict(state["model"])
        if self.rank == 0:  # BUG
            self.optimizer.load_state_dict(state["optimizer"])  # BUG


def checkpoint_path() -> Path:
    names = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(names, 0)
    return Path(str(names[0])) / "checkpoint.pt"


def main() -> None:
    rank, _ = start()
    file = checkpoint_path()
    trainer = Trainer(rank)
    trainer.train(0, FIRST)
    trainer.save(file)
    trainer = Trainer(rank)
    trainer.load(file)
    trainer.train(FIRST, STEPS)
    finish(trainer.model.parameters())


if __name__ == "__main__":
    main()
