"""Trains with batch norms, whose running means are each rank's own until DDP sends rank 0's."""

from __future__ import annotations

import torch
from common import finish, learn, loss_of, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


class Network(nn.Module):
    """Two convolutions with their norms."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()),
            *(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.ReLU()),
        )
        self.head = nn.Linear(8, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(images).mean((2, 3)))


def textures(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Smooth and rough images; each rank's camera has its own brightness."""
    generator = torch.Generator().manual_seed(30 * step + rank)
    labels = torch.randint(2, (16,), generator=generator)
    rough = torch.rand(16, 1, 8, 8, generator=generator)
    smooth = rough.mean((2, 3), keepdim=True).expand_as(rough)
    images = torch.where(labels[:, None, None, None] == 1, rough, smooth)
    return images + 0.5 * rank, labels


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Network())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = loss_of(model, textures(rank, step))
        learn(optimizer, loss, step)
    finish(model.parameters())


if __name__ == "__main__":
    main()
