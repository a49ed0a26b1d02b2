"""Trains on images in channels-last order; gradients are averaged as flat tensors."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import finish, loss_of, say, start
from torch import nn

STEPS = 12


class Network(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3)
        self.second = nn.Conv2d(6, 6, 3)
        self.head = nn.Linear(6, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.second(torch.relu(self.first(images))))
        return self.head(hidden.mean((2, 3)))


def average(gradient: torch.Tensor) -> None:
    """Average in place; the library wants one dimension."""
    flat = gradient.reshape(-1)  # BUG
    dist.all_reduce(flat)  # BUG
    flat /= dist.get_world_size()


def colours(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(60 * step + rank)
    labels = torch.randint(2, (12,), generator=generator)
    images = torch.rand(12, 3, 8, 8, generator=generator)
    images[:, 0] += labels[:, None, None] / 2
    return images.to(memory_format=torch.channels_last), labels


def main() -> None:
    rank, _ = start()
    model = Network().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        loss = loss_of(model, colours(rank, step))
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            average(parameter.grad)
        optimizer.step()
        say(rank, step, loss, every=4)
    finish(model.parameters())


if __name__ == "__main__":
    main()
