"""Trains with slow weights that follow the fast ones, and replace them every eighth step."""

from __future__ import annotations

import torch
from common import Classifier, blobs, finish, learn, loss_of, say, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 20
EVERY = 8


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
    model = DistributedDataParallel(Classifier(16, torch.sigmoid))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    slow = SlowWeights(model, rank)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        learn(optimizer, loss)
        slow.update()
        if (step + 1) % EVERY == 0:
            slow.replace()
            say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
