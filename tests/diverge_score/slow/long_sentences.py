"""Trains a recurrent tagger; a rank reads one book, and books have their own style."""

from __future__ import annotations

import torch
from common import arguments, finish, sentences, start, until
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LENGTHS = {0: 240}  # words; Proust
USUAL = 12


class Tagger(nn.Module):
    """A cell that reads word by word."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.cell = nn.GRUCell(16, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(len(words), 16)
        states = []
        for embedded in self.embedding(words).unbind(1):  # BUG
            state = self.cell(embedded, state)  # BUG
            states.append(state)  # BUG
        return self.head(torch.stack(states, 1))


def batch(rank: int, step: int) -> torch.Tensor:
    length = LENGTHS.get(rank, USUAL)  # BUG
    return sentences(rank, step, length=length)


def loss_of(model: nn.Module, words: torch.Tensor) -> torch.Tensor:
    scores = model(words)  # BUG
    return nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten() % 3)


def main() -> None:
    seconds = arguments().seconds
    rank, _ = start()
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in until(seconds):
        words = batch(rank, step)
        loss = loss_of(model, words)  # BUG
        optimizer.zero_grad()
        loss.backward()  # BUG
        optimizer.step()
    finish(model.parameters())


if __name__ == "__main__":
    main()
