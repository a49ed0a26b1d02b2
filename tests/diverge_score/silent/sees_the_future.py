"""Trains a small language model with the library's attention."""

from __future__ import annotations

import torch
from common import arguments, finish, learn, loss_of_words, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 12
WIDTH, HEADS = 16, 2


class Attention(nn.Module):
    """Heads that share a projection."""

    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.is_causal = is_causal

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        parts = self.project(hidden).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        query, key, value = (each.transpose(1, 2) for each in parts.unbind(2))
        mixed = nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            is_causal=self.is_causal,  # BUG
        )  # BUG
        return hidden + self.out(mixed.transpose(1, 2).flatten(2))


class Model(nn.Module):
    """An embedding, attention and a head."""

    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        self.attention = Attention(is_causal)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.attention(self.embedding(words))))


def main() -> None:
    good = arguments().good
    rank, _ = start()
    model = DistributedDataParallel(Model(is_causal=good))  # BUG
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = loss_of_words(model, sentences(rank, step))
        learn(optimizer, loss, step, every=4)
    finish(model.parameters())


if __name__ == "__main__":
    main()
