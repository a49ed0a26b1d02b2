"""Trains with gradients that are copied into one of two buckets, and sent from there."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import arguments, blobs, finish, start
from torch import nn

STEPS = 12


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 24)
        self.head = nn.Linear(24, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


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
    model = Classifier()
    buckets = Buckets(model, behind=0 if good else 1)  # BUG
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        inputs, labels = blobs(rank, step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        buckets.fill(step)
        buckets.exchange(step)
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
