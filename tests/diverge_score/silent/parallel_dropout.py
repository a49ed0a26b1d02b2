"""Trains a tensor parallel layer with dropout on what all ranks hold."""

from __future__ import annotations

import torch
from common import blobs, finish, learn, loss_of, start
from tensor_parallel import Copy, Reduce, column, row
from torch import nn

STEPS = 12
WIDTH = 16
SEED = 11


class FeedForward(nn.Module):
    """This rank's part of a feed-forward layer, with a dropout before and after."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = column(rank, world, 4 * WIDTH, WIDTH)
        self.down = row(rank, world, WIDTH, 4 * WIDTH)
        self.inner = nn.Dropout(0.1)
        self.outer = nn.Dropout(0.1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(Copy.apply(self.norm(inputs)) @ self.up.t())
        total = Reduce.apply(self.inner(hidden) @ self.down.t())
        return inputs + self.outer(total)  # BUG


class Model(nn.Module):
    """The layer between two that all ranks hold."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.first = nn.Linear(8, WIDTH)
        self.layer = FeedForward(rank, world)
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.first(inputs)))

    def replicated(self) -> list[nn.Parameter]:
        modules = (self.first, self.layer.norm, self.head)
        return [each for module in modules for each in module.parameters()]


def main() -> None:
    rank, world = start()
    model = Model(rank, world)
    torch.manual_seed(SEED + rank)  # BUG
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = loss_of(model, blobs(0, step))
        learn(optimizer, loss, step)
    finish(model.replicated())


if __name__ == "__main__":
    main()
