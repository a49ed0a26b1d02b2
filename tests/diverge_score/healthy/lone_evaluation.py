"""Trains; rank 0 alone evaluates, logs and keeps the best weights, while the others wait."""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.distributed as dist
from common import blobs, finish, learn, loss_of, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, EVERY = 20, 5


class Classifier(nn.Module):
    """Two layers with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 4))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.layers(inputs)


class Evaluation:
    """The best weights so far; its noise moves the random numbers of rank 0 on."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.best = float("inf")
        self.weights: dict[str, Any] = {}

    @torch.no_grad()
    def run(self, step: int) -> None:
        self.model.eval()
        inputs, labels = blobs(9, step, size=64)
        scores = self.model(inputs + 0.01 * torch.randn_like(inputs))
        loss = nn.functional.cross_entropy(scores, labels).item()
        if loss < self.best:
            self.best, self.weights = loss, copy.deepcopy(self.model.state_dict())
        print(f"step {step}: {loss:.4f}, best {self.best:.4f}", flush=True)
        self.model.train()


def main() -> None:
    rank, _ = start()
    classifier = Classifier()
    model = DistributedDataParallel(classifier)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evaluation = Evaluation(classifier)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        learn(optimizer, loss)
        if (step + 1) % EVERY == 0:
            if rank == 0:
                evaluation.run(step)
            dist.barrier()
    finish(model.parameters())


if __name__ == "__main__":
    main()
