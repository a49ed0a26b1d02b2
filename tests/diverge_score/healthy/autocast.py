"""Trains with DDP and bfloat16 autocast."""

from __future__ import annotations

import torch
from common import finish, say, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 15


class Model(nn.Module):
    """A small transformer that predicts the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 32)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        length = words.shape[1]
        mask = torch.full((length, length), float("-inf")).triu(1)
        return self.head(self.layer(self.embedding(words), mask))


def loss_of(model: nn.Module, words: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        scores = model(words[:, :-1])
        return nn.functional.cross_entropy(scores.flatten(0, 1).float(), words[:, 1:].flatten())


def main() -> None:
    rank, _ = start()
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for step in range(STEPS):
        loss = loss_of(model, sentences(rank, step))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        say(rank, step, loss, every=5)
    finish(model.parameters())


if __name__ == "__main__":
    main()
