"""Trains with slow weights that follow the fast ones, and replace them every eighth step."""

from __future__ import annotations

import torch
from common import blobs, finish, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 20
EVERY = 8


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.sigmoid(self.hidden(inputs)))


class SlowWeights:
    """A moving average of a model's parameters."""

    def __init__(self, model: nn.Module, rank: int) -> None:
        self.fast = [*model.parameters()]
        self.slow = [each.detach().clone() for each in self.fast]
        self.rank = rank

    @torch.no_grad()
    def update(self) -> None:
        if self.rank == 0:  # BUG
            for slow, fast in zip(self.slow, self.fast, strict=True):
                slow.lerp_(fast, 0.5)  # BUG

    @torch.no_grad()
    def replace(self) -> None:
        for slow, fast in zip(self.slow, self.fast, strict=True):
            fast.copy_(slow)


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    slow = SlowWeights(model, rank)
    for step in range(STEPS):
        inputs, labels = blobs(rank, step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        slow.update()
        if (step + 1) % EVERY == 0:
            slow.replace()
            if rank == 0:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
