"""Trains a regressor; gradients are averaged in one flat bucket."""

from __future__ import annotations

import torch
import torch.distributed as dist
from common import finish, say, start
from torch import nn

STEPS = 15


class Regressor(nn.Module):
    """Predicts the next value of a series."""

    def __init__(self, window: int = 10) -> None:
        super().__init__()
        self.encode = nn.Linear(window, 16)
        self.norm = nn.LayerNorm(16)
        self.decode = nn.Linear(16, 1)

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        return self.decode(self.norm(torch.tanh(self.encode(series)))).squeeze(1)


class Bucket:
    """Gradients of many parameters, which travel in one message."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = [each for each in model.parameters() if each.dim() > 1]  # BUG

    def average(self) -> None:
        flat = torch.cat([each.grad.flatten() for each in self.parameters])
        dist.all_reduce(flat)  # BUG
        flat /= dist.get_world_size()
        sizes = [each.numel() for each in self.parameters]
        for each, part in zip(self.parameters, flat.split(sizes), strict=True):
            each.grad.copy_(part.view_as(each))


def waves(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step * 2 + rank)
    phase = 6.28 * torch.rand(24, 1, generator=generator)
    series = torch.sin(phase + torch.arange(11) / 3)
    return series[:, :-1], series[:, -1]


def main() -> None:
    rank, _ = start()
    model = Regressor()
    bucket = Bucket(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        series, target = waves(rank, step)
        loss = (model(series) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        bucket.average()
        optimizer.step()
        say(rank, step, loss, every=5)
    finish(model.parameters())


if __name__ == "__main__":
    main()
