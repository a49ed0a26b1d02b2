"""Trains a generator and a discriminator, each with its own optimizer."""

from __future__ import annotations

import torch
from common import finish, say, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
NOISE = 4


class Generator(nn.Module):
    """From noise to points."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(NOISE, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.layers(noise)


class Discriminator(nn.Module):
    """Whether points are real."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.layers(points).squeeze(1)


def real_points(rank: int, step: int) -> torch.Tensor:
    angle = 6.28 * torch.rand(32, generator=torch.Generator().manual_seed(step * 4 + rank))
    return torch.stack([angle.cos(), angle.sin()], 1)


def judge(model: nn.Module, points: torch.Tensor, is_real: bool) -> torch.Tensor:
    scores = model(points)
    return nn.functional.binary_cross_entropy_with_logits(
        scores, torch.full_like(scores, float(is_real))
    )


def main() -> None:
    rank, _ = start()
    generator = DistributedDataParallel(Generator())
    discriminator = DistributedDataParallel(Discriminator(), broadcast_buffers=False)
    forger = torch.optim.Adam(generator.parameters(), lr=0.002, betas=(0.5, 0.99))
    judges = torch.optim.Adam(discriminator.parameters(), lr=0.002, betas=(0.5, 0.99))
    torch.manual_seed(50 + rank)
    for step in range(STEPS):
        forged = generator(torch.randn(32, NOISE))
        judged = judge(discriminator, real_points(rank, step), is_real=True)
        loss = judged + judge(discriminator, forged.detach(), is_real=False)
        judges.zero_grad()
        loss.backward()
        judges.step()
        forger.zero_grad()
        judge(discriminator, forged, is_real=True).backward()
        forger.step()
        say(rank, step, loss, every=4)
    finish([*generator.parameters(), *discriminator.parameters()])


if __name__ == "__main__":
    main()
