"""Trains, writes a checkpoint, and goes on from it."""

from __future__ import annotations

import io
from typing import Any

import torch
from common import arguments, finish, loss_of_words, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FIRST, STEPS = 8, 16


class Model(nn.Module):
    """Predicts a word from the one before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.hidden = nn.Linear(16, 24)
        self.head = nn.Linear(24, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(self.embedding(words))))


def saved(model: nn.Module, optimizer: torch.optim.Optimizer) -> io.BytesIO:
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    return file


def resume(file: io.BytesIO, model: nn.Module, optimizer: torch.optim.Optimizer, keys: Any) -> None:
    state = torch.load(file)
    parts = {"model": model, "optimizer": optimizer}
    for key in keys:
        parts[key].load_state_dict(state[key])  # BUG


def make(rank: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(rank)
    model = DistributedDataParallel(Model())
    return model, torch.optim.Adam(model.parameters(), lr=0.01)


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, steps: range, rank: int
) -> torch.Tensor:
    loss = torch.zeros(())
    for step in steps:
        loss = loss_of_words(model, sentences(rank, step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # BUG
    return loss.detach()


def main() -> None:
    good = arguments().good
    rank, _ = start()
    model, optimizer = make(rank)
    train(model, optimizer, range(FIRST), rank)
    file = saved(model, optimizer)
    model, optimizer = make(rank)
    resume(file, model, optimizer, ["model", "optimizer"] if good else ["model"])  # BUG
    loss = train(model, optimizer, range(FIRST, STEPS), rank)
    print(f"rank {rank}: loss {loss.item():.4f}", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
