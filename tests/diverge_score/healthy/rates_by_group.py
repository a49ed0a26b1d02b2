"""Fine-tunes: the body learns slowly, the head fast, biases without decay, the embedding not."""

from __future__ import annotations

from typing import Any

import torch
from common import finish, learn, say, sentences, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 15


class Tagger(nn.Module):
    """A tag for each word."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.body = nn.Linear(16, 16)
        self.head = nn.Linear(16, 3)
        self.embedding.requires_grad_(False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(self.embedding(words))))


def groups(model: Tagger) -> list[dict[str, Any]]:
    """Return what the optimizer gets."""
    biases = [model.body.bias, model.head.bias]
    return [
        {"params": [model.body.weight], "lr": 0.001},
        {"params": [model.head.weight], "lr": 0.02},
        {"params": biases, "lr": 0.02, "weight_decay": 0.0},
    ]


def main() -> None:
    rank, _ = start()
    tagger = Tagger()
    model = DistributedDataParallel(tagger)
    optimizer = torch.optim.AdamW(groups(tagger), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5)
    for step in range(STEPS):
        words = sentences(rank, step)
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten() % 3)
        learn(optimizer, loss)
        schedule.step()
        say(rank, step, loss, every=5)
    finish(model.parameters())


if __name__ == "__main__":
    main()
