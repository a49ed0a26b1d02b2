"""Trains on sentences of different lengths, with gradients accumulated over two micro-batches."""

from __future__ import annotations

import contextlib

import torch
from common import arguments, finish, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, ACCUMULATE = 12, 2
TOKENS = 45  # of a micro-batch, on average
IGNORED = -100


class Model(nn.Module):
    """Predicts a word from the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.head = nn.Linear(16, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.embedding(words)))


def batch(rank: int, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return words and the words that follow, of which some are only padding."""
    words = sentences(rank, number)
    targets = words[:, 1:].clone()
    lengths = torch.randint(2, 12, (len(words), 1), generator=torch.Generator().manual_seed(number))
    targets[torch.arange(targets.shape[1]) >= lengths] = IGNORED
    return words[:, :-1], targets


def loss_of(scores: torch.Tensor, targets: torch.Tensor, fixed: bool) -> torch.Tensor:
    counted = (targets != IGNORED).sum()
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum")
    return loss / (TOKENS if fixed else counted)  # BUG


def accumulate(model: DistributedDataParallel, rank: int, step: int, good: bool) -> None:
    for micro in range(ACCUMULATE):
        words, targets = batch(rank, step * ACCUMULATE + micro)
        is_last = micro == ACCUMULATE - 1
        with contextlib.nullcontext() if is_last else model.no_sync():
            loss = loss_of(model(words), targets, fixed=good) / ACCUMULATE
            loss.backward()


def main() -> None:
    good = arguments().good
    rank, _ = start()
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        accumulate(model, rank, step, good)
        optimizer.step()
        if rank == 0 and step % 4 == 0:
            print(f"step {step} done", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
