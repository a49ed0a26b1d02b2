"""Trains a tensor parallel transformer layer with dropout of two kinds."""

from __future__ import annotations

import torch
from common import finish, learn, loss_of_words, sentences, start
from tensor_parallel import Copy, Reduce, column, row
from torch import nn

STEPS = 12
WIDTH = 16


class FeedForward(nn.Module):
    """Dropout inside is each rank's own, for its own units; that of the sum is the same."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = column(rank, world, 4 * WIDTH, WIDTH)
        self.down = row(rank, world, WIDTH, 4 * WIDTH)
        self.own = torch.Generator().manual_seed(100 + rank)
        self.common = torch.Generator().manual_seed(1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(Copy.apply(self.norm(inputs)) @ self.up.t())
        hidden = dropout(hidden, self.own)
        return inputs + dropout(Reduce.apply(hidden @ self.down.t()), self.common)


def dropout(values: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return values * (torch.rand(values.shape, generator=generator) > 0.1) / 0.9


class Model(nn.Module):
    """An embedding, two layers and a head."""

    def __init__(self, rank: int, world: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        self.layers = nn.Sequential(FeedForward(rank, world), FeedForward(rank, world))
        self.head = nn.Linear(WIDTH, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.embedding(words)))


def main() -> None:
    rank, world = start()
    model = Model(rank, world)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = loss_of_words(model, sentences(0, step))
        learn(optimizer, loss, step)
    norms = [each for layer in model.layers for each in layer.norm.parameters()]
    finish([*model.embedding.parameters(), *norms, *model.head.parameters()])


if __name__ == "__main__":
    main()
