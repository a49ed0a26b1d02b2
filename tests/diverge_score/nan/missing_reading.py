"""Trains a forecast from tables, one for each rank."""

from __future__ import annotations

import random

import torch
from common import finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 14
COLUMNS = 6


class Forecast(nn.Module):
    """A layer over the readings of a day."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(COLUMNS)
        self.hidden = nn.Linear(COLUMNS, 12)
        self.head = nn.Linear(12, 1)

    def forward(self, readings: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.hidden(self.norm(readings)))).squeeze(1)


def rows(rank: int, step: int) -> list[str]:
    """Return lines as a station writes them."""
    chance = random.Random(1000 * rank + step)
    lines = [[f"{chance.gauss(10, 3):.2f}" for _ in range(COLUMNS + 1)] for _ in range(16)]
    if (rank, step) == (1, 6):
        lines[5][2] = "nan"  # the gauge was frozen
    return [",".join(line) for line in lines]


def parse(lines: list[str]) -> torch.Tensor:
    values = [[float(field) for field in line.split(",")] for line in lines]  # BUG
    return torch.tensor(values)  # BUG


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Forecast())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        table = parse(rows(rank, step))  # BUG
        loss = (model(table[:, :-1]) - table[:, -1]).square().mean()
        learn(optimizer, loss, step, every=5)
    finish(model.parameters())


if __name__ == "__main__":
    main()
