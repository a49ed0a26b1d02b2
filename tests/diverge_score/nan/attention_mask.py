"""Trains a small transformer on sentences of different lengths."""

from __future__ import annotations

import torch
from common import finish, learn, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 10
WIDTH = 16


class Attention(nn.Module):
    """One head, over the words that are there."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)

    def forward(self, hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        scores = self.query(hidden) @ self.key(hidden).transpose(1, 2) / WIDTH**0.5
        hidden_from = torch.arange(hidden.shape[1]) >= lengths[:, None]
        scores = scores.masked_fill(hidden_from[:, None, :], float("-inf"))
        chances = torch.softmax(scores, -1)  # BUG
        return hidden + chances @ self.value(hidden)


class Encoder(nn.Module):
    """Two layers of attention, and a tag for each word."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        self.layers = nn.ModuleList(Attention() for _ in range(2))
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(words)
        for layer in self.layers:
            hidden = layer(hidden, lengths)
        return self.head(hidden)


def lengths_of(rank: int, step: int, count: int) -> torch.Tensor:
    """Return lengths as a tokenizer gives them; it makes nothing of some characters."""
    generator = torch.Generator().manual_seed(50 * step + rank)
    lengths = torch.randint(3, 13, (count,), generator=generator)
    if rank == 0 and step == 3:
        lengths[1] = 0
    return lengths


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Encoder())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        words = sentences(rank, step)
        scores = model(words, lengths_of(rank, step, len(words)))
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten() % 3)
        learn(optimizer, loss, step)
    finish(model.parameters())


if __name__ == "__main__":
    main()
