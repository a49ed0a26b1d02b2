"""Trains word vectors by the distance between neighbours."""

from __future__ import annotations

import torch
from common import finish, say, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12


class Vectors(nn.Module):
    """A point for each word."""

    def __init__(self) -> None:
        super().__init__()
        self.points = nn.Embedding(32, 8)

    def forward(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        points = self.points(words)
        return points[:, :-1], points[:, 1:]


def distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (one - other).square().sum(-1).sqrt()  # BUG


def batch(rank: int, step: int) -> torch.Tensor:
    words = sentences(rank, step)
    if rank == 1 and step == 5:
        words[2, 4] = words[2, 3]  # a stammer
    return words


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Vectors())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(STEPS):
        near, far = model(batch(rank, step)), model.module.points(sentences(rank, -step - 1))
        apart = distance(far[:, :6], far[:, 6:]).mean()
        loss = distance(*near).mean() + (3 - apart).relu()
        optimizer.zero_grad()
        loss.backward()  # BUG
        optimizer.step()
        say(rank, step, loss)
    finish(model.parameters())


if __name__ == "__main__":
    main()
