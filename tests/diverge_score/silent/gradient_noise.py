"""Trains with privacy: clipped gradients, averaged, to which noise is added."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import blobs, finish, start
from torch import nn

STEPS = 12
CLIP, NOISE = 1.0, 0.05


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 24)
        self.head = nn.Linear(24, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


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
    model = Classifier()
    privacy = Privacy(model, rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for step in range(STEPS):
        inputs, labels = blobs(rank, step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        privacy.average()
        privacy.add_noise()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
