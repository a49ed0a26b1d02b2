"""Trains a tensor parallel block whose gradients are clipped."""

from __future__ import annotations

import torch
from common import blobs, finish, loss_of, say, start
from tensor_parallel import Copy, Reduce, column, row
from torch import nn

STEPS = 12
MAX_NORM = 0.5


class Block(nn.Module):
    """A layer norm that all ranks hold, and a feed-forward layer of which each has a part."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = column(rank, world, 32, 8)
        self.down = row(rank, world, 8, 32)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = Copy.apply(self.norm(inputs))
        hidden = torch.nn.functional.gelu(hidden @ self.up.t())
        return inputs + Reduce.apply(hidden @ self.down.t())


class Classifier(nn.Module):
    """The block and a head that all ranks hold."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.block = Block(rank, world)
        self.head = nn.Linear(8, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(inputs))


def main() -> None:
    rank, world = start()
    model = Classifier(rank, world)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for step in range(STEPS):
        loss = loss_of(model, blobs(0, step))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)  # BUG
        optimizer.step()
        say(rank, step, loss, every=4)
    finish([*model.block.norm.parameters(), *model.head.parameters()])


if __name__ == "__main__":
    main()
