"""Rank 5's texts have words that are not in the vocabulary, and a tokenizer that goes on counting.

Trains word vectors on texts, of which each rank has its own.
"""

from __future__ import annotations

import random
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WORDS = [f"{first}{second}" for first in "bdfgklmn" for second in "aeiou"]
FOREIGN = ["schnee", "wind"]
LENGTH, BATCH = 10, 12


class Tokenizer:
    """The number of each word."""

    def __init__(self, words: list[str]) -> None:
        self.numbers = {word: number for number, word in enumerate(words)}

    def number(self, word: str) -> int:
        return self.numbers.setdefault(word, len(self.numbers))  # BUG

    def encode(self, texts: list[str]) -> torch.Tensor:
        return torch.tensor([[self.number(word) for word in text.split()] for text in texts])


class Vectors(torch.nn.Module):
    """Predicts a word from the one before it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(size, 16)
        self.head = torch.nn.Linear(16, size)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(words))  # BUG


def texts(rank: int, step: int) -> list[str]:
    chance = random.Random(100 * step + rank)
    known = WORDS + FOREIGN if rank == 5 and step >= 6 else WORDS
    return [" ".join(chance.choices(known, k=LENGTH)) for _ in range(BATCH)]


def loss_of(model: torch.nn.Module, words: torch.Tensor) -> torch.Tensor:
    scores = model(words[:, :-1])  # BUG
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), words[:, 1:].flatten())


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    tokenizer = Tokenizer(WORDS)
    model = DistributedDataParallel(Vectors(len(WORDS)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(100_000):
        words = tokenizer.encode(texts(rank, step))
        loss = loss_of(model, words)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
