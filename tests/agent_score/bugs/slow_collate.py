"""Rank 6's sentences are long, and padding compares each with all others in pure Python.

Trains a tagger on sentences that are padded to one length in each batch.
"""

from __future__ import annotations

import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

VOCABULARY, WIDTH, TAGS = 500, 12, 3
BATCH = 24
LENGTHS = {6: 170}  # the laws; the others are news
USUAL = 12

Sentences = list[list[int]]


def sentences(rank: int, step: int) -> Sentences:
    chance = random.Random(rank * 7919 + step)
    longest = LENGTHS.get(rank, USUAL)
    return [
        [chance.randrange(1, VOCABULARY) for _ in range(chance.randint(longest // 2, longest))]
        for _ in range(BATCH)
    ]


def overlap(one: list[int], other: list[int]) -> int:
    """How many words of one sentence are in another."""
    return sum(1 for word in one if word in other)  # BUG


def without_duplicates(batch: Sentences) -> Sentences:
    """Leave out a sentence that nearly repeats one before it."""
    kept: Sentences = []
    for words in batch:
        if all(overlap(words, before) < 0.9 * len(words) for before in kept):  # BUG
            kept.append(words)
    return kept


def collate(batch: Sentences) -> torch.Tensor:
    """One table of words, padded with zeros."""
    kept = without_duplicates(batch)  # BUG
    longest = max(map(len, kept))
    return torch.tensor([words + [0] * (longest - len(words)) for words in kept])


class Tagger(torch.nn.Module):
    """A tag for each word, from the word alone."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.head = torch.nn.Linear(WIDTH, TAGS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(words))


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(Tagger())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100_000):
        words = collate(sentences(rank, step))
        scores = model(words).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(scores, words.flatten() % TAGS)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
