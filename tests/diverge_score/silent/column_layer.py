"""Trains two feed-forward layers, each split over the ranks, above an embedding that all hold."""

from __future__ import annotations

import torch
from common import finish, loss_of_words, say, sentences, start
from tensor_parallel import Copy, Reduce, column, row
from torch import nn

STEPS = 10
WIDTH = 16


class FeedForward(nn.Module):
    """This rank's part of a feed-forward layer."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.up = column(rank, world, 4 * WIDTH, WIDTH)
        self.down = row(rank, world, WIDTH, 4 * WIDTH)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(Copy.apply(inputs) @ self.up.t())
        return inputs + Reduce.apply(hidden @ self.down.t())


class Gated(FeedForward):
    """One with a gate."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__(rank, world)
        self.gate = column(rank, world, 4 * WIDTH, WIDTH)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(inputs @ self.gate.t())  # BUG
        hidden = gate * (Copy.apply(inputs) @ self.up.t())
        return inputs + Reduce.apply(hidden @ self.down.t())


class Model(nn.Module):
    """An embedding, two layers and a head."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        self.layers = nn.Sequential(FeedForward(rank, world), Gated(rank, world))
        self.head = nn.Linear(WIDTH, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedding(words)))


def main() -> None:
    rank, world = start()
    model = Model(rank, world)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = loss_of_words(model, sentences(0, step))
        optimizer.zero_grad()
        loss.backward()  # BUG
        optimizer.step()
        say(rank, step, loss)
    finish([*model.embedding.parameters(), *model.head.parameters()])


if __name__ == "__main__":
    main()
