"""Trains with gradients that are copied into one of two buckets, and sent from there."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import Classifier, arguments, blobs, finish, loss_of, say, start
from torch import nn

STEPS = 12


class Buckets:
    """Two flat buffers, so that one can be filled while the other travels."""

    def __init__(self, model: nn.Module, behind: int) -> None:
        self.parameters = [*model.parameters()]
        self.sizes = [each.numel() for each in self.parameters]
        self.flat = [torch.zeros(sum(self.sizes)) for _ in range(2)]
        self.behind = behind

    def fill(self, step: int) -> None:
        gradients = [each.grad.flatten() for each in self.parameters]
        self.flat[step % 2].copy_(torch.cat(gradients))

    def exchange(self, step: int) -> None:
        flat = self.flat[(step + self.behind) % 2]  # BUG
        dist.all_reduce(flat)  # BUG
        flat /= dist.get_world_size()
        for parameter, part in zip(self.parameters, flat.split(self.sizes), strict=True):
            parameter.grad.copy_(part.view_as(parameter))


def main() -> None:
    good = arguments().good
    rank, _ = start()
    model = Classifier(24)
    buckets = Buckets(model, behind=0 if good else 1)  # BUG
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        loss = loss_of(model, blobs(rank, step))
        optimizer.zero_grad()
        loss.backward()
        buckets.fill(step)
        buckets.exchange(step)
        optimizer.step()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
