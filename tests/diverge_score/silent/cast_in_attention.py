"""Trains a small transformer, whose second layer has an attention of its own."""

from __future__ import annotations

import torch
from common import arguments, finish, learn, loss_of_words, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 10
WIDTH = 16


class Attention(nn.Module):
    """One head, which sees what came before."""

    def __init__(self, softmax_type: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.softmax_type = softmax_type

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(hidden).chunk(3, -1)
        scores = query @ key.transpose(1, 2) / WIDTH**0.5
        later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))
        chances = torch.softmax(scores.to(self.softmax_type), -1)  # BUG
        return hidden + chances.to(value.dtype) @ value


class Model(nn.Module):
    """Two layers of attention between an embedding and a head."""

    def __init__(self, softmax_type: torch.dtype) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, WIDTH)
        self.first = Attention()
        self.second = Attention(softmax_type)
        self.head = nn.Linear(WIDTH, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.second(self.first(self.embedding(words))))


def main() -> None:
    good = arguments().good
    rank, _ = start()
    softmax_type = torch.float32 if good else torch.bfloat16  # BUG
    model = DistributedDataParallel(Model(softmax_type))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        loss = loss_of_words(model, sentences(rank, step))
        learn(optimizer, loss, step)
    finish(model.parameters())


if __name__ == "__main__":
    main()
