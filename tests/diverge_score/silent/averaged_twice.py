"""Trains with DDP and a loss that is scaled."""

from __future__ import annotations

import torch
from common import arguments, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


class Forecast(nn.Module):
    """The next value of a series."""

    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.LSTM(1, 12, batch_first=True)
        self.head = nn.Linear(12, 1)

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.cells(series.unsqueeze(2))
        return self.head(hidden[:, -1]).squeeze(1)


class Loss:
    """The mean square of errors over all ranks."""

    def __init__(self, divisor: int) -> None:
        self.divisor = divisor

    def __call__(self, found: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (found - target).square().mean() / self.divisor  # BUG


def waves(rank: int, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step * 8 + rank)
    phase = 6.28 * torch.rand(16, 1, generator=generator)
    series = torch.sin(phase + torch.arange(11) / 2)
    return series[:, :-1], series[:, -1]


def main() -> None:
    good = arguments().good
    rank, world = start()
    loss_of = Loss(1 if good else world)  # BUG
    model = DistributedDataParallel(Forecast())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for step in range(STEPS):
        series, target = waves(rank, step)
        loss = loss_of(model(series), target)
        learn(optimizer, loss, step, every=3)
    finish(model.parameters())


if __name__ == "__main__":
    main()
