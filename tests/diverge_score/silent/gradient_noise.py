"""Trains with privacy: clipped gradients, averaged, to which noise is added."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import Classifier, blobs, finish, loss_of, say, start
from torch import nn

STEPS = 12
CLIP, NOISE = 1.0, 0.05


class Privacy:
    """What hides a single sample in a gradient."""

    def __init__(self, model: nn.Module, rank: int) -> None:
        self.parameters = [*model.parameters()]
        self.generator = torch.Generator().manual_seed(99 + rank)  # BUG

    def average(self) -> None:
        nn.utils.clip_grad_norm_(self.parameters, CLIP)
        for parameter in self.parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()

    def add_noise(self) -> None:
        for parameter in self.parameters:
            noise = torch.randn(parameter.shape, generator=self.generator)  # BUG
            parameter.grad += NOISE * noise  # BUG


def main() -> None:
    rank, _ = start()
    model = Classifier(24)
    privacy = Privacy(model, rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        optimizer.zero_grad()
        loss.backward()
        privacy.average()
        privacy.add_noise()
        optimizer.step()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
