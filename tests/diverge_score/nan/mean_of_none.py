"""Trains a detector with FSDP: the loss of boxes is averaged over those that overlap."""

from __future__ import annotations

import torch
from common import finish, learn, start
from torch import nn
from torch.distributed.fsdp import fully_shard

STEPS = 12


class Detector(nn.Module):
    """Two numbers, the left and the right end of what is in a line."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(16, 24)
        self.middle = nn.Linear(24, 24)
        self.head = nn.Linear(24, 2)

    def forward(self, lines: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.middle(torch.relu(self.hidden(lines))))
        return self.head(hidden)


def lines_of(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw bars in lines of 16 pixels; one file has none."""
    generator = torch.Generator().manual_seed(step * 16 + rank)
    ends = torch.rand(12, 2, generator=generator).sort(1).values
    if rank == 2 and step == 7:
        ends = ends * 0 - 1
    pixels = torch.arange(16) / 16
    bars = (pixels >= ends[:, :1]) & (pixels < ends[:, 1:])
    return bars.float(), ends


def loss_of(found: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    there = ends[:, 1] > 0
    errors = (found - ends).abs().sum(1)
    return (errors * there).sum() / there.sum()  # BUG


def main() -> None:
    rank, _ = start()
    model = Detector()
    fully_shard(model.middle)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        bars, ends = lines_of(rank, step)
        loss = loss_of(model(bars), ends)
        learn(optimizer, loss, step)
    finish(model.parameters())


if __name__ == "__main__":
    main()
