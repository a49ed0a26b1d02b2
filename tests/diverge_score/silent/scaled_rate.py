"""Trains a small image classifier with a learning rate that grows with the number of ranks."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import finish, loss_of, say, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 10
BASE_RATE = 0.02


class Network(nn.Module):
    """One convolution and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 6, 3, padding=1)
        self.head = nn.Linear(6 * 16, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = nn.functional.max_pool2d(torch.relu(self.convolution(images)), 2)
        return self.head(features.flatten(1))


def images_of(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Bars that lie or stand."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    images = 0.3 * torch.randn(16, 1, 8, 8, generator=generator)
    labels = torch.randint(2, (16,), generator=generator)
    for image, label in zip(images, labels, strict=True):
        if label:
            image[0, 3] += 1
        else:
            image[0, :, 3] += 1
    return images, labels


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Follow the linear scaling rule."""
    rate = BASE_RATE * max(1, dist.get_rank())  # BUG
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)  # BUG


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Network())
    optimizer = make_optimizer(model)
    for step in range(STEPS):
        loss = loss_of(model, images_of(rank, step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # BUG
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
