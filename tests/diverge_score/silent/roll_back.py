"""Trains, keeps a good state every fifth step, and goes back to it after a spike of the loss."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.distributed as dist
from common import blobs, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 18
SPOILT = 12  # the step with a bad batch


class Autoencoder(nn.Module):
    """Eight features through three."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 3)
        self.decoder = nn.Linear(3, 8)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.decoder(torch.tanh(self.encoder(inputs)))


class Trainer:
    """A model, and the last state of it that was good."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.model = DistributedDataParallel(Autoencoder())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.kept: dict[str, Any] = {}
        self.usual = float("inf")

    def roll_back(self) -> None:
        if self.rank == 0:  # BUG
            self.model.load_state_dict(self.kept)  # BUG
        dist.barrier()

    def step(self, step: int) -> float:
        inputs, _ = blobs(self.rank, step)
        if step == SPOILT:
            inputs = inputs * 20
        loss = (self.model(inputs) - inputs).square().mean()
        learn(self.optimizer, loss)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        return mean.item() / dist.get_world_size()

    def watch(self, step: int, loss: float) -> None:
        if loss > 3 * self.usual:
            self.roll_back()
            return
        self.usual = loss
        if step % 5 == 0:
            self.kept = copy.deepcopy(self.model.state_dict())


def main() -> None:
    rank, _ = start()
    trainer = Trainer(rank)
    for step in range(STEPS):
        loss = trainer.step(step)
        trainer.watch(step, loss)
        if rank == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)
    finish(trainer.model.parameters())


if __name__ == "__main__":
    main()
