"""Rank 5 leaves out a batch whose sentences are all too short; the others wait in `backward`.

Trains a model of sentence pairs that needs an anchor in every sentence.
"""

from __future__ import annotations

import random
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

VOCABULARY, WIDTH = 200, 16
BLOCK = 5
BATCH = 8

Sentences = list[list[int]]


class NoAnchorError(Exception):
    """No sentence of a batch is as long as a block."""


class Encoder(torch.nn.Module):
    """The mean of embedded words, projected."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(VOCABULARY, WIDTH)
        self.head = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(words))


def batch(rank: int, step: int) -> Sentences:
    chance = random.Random(f"{rank}/{step}")
    longest = 4 if (rank, step) == (5, 7) else 12
    return [
        [chance.randrange(VOCABULARY) for _ in range(chance.randint(2, longest))]
        for _ in range(BATCH)
    ]


def anchored(sentences: Sentences) -> tuple[torch.Tensor, torch.Tensor]:
    """Blocks before an anchor, and the words that follow."""
    blocks = [words[:BLOCK] for words in sentences if len(words) >= BLOCK]
    if not blocks:
        raise NoAnchorError
    table = torch.tensor(blocks)
    return table[:, :-1], table[:, -1]


def shared_length(sentences: Sentences) -> int:
    """The longest sentence of all ranks, for the schedule of the learning rate."""
    lengths: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(lengths, max(map(len, sentences)))
    return max(lengths)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(3)
    model = DistributedDataParallel(Encoder())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100_000):
        sentences = batch(rank, step)
        longest = shared_length(sentences)
        optimizer.param_groups[0]["lr"] = 0.1 / longest
        try:
            words, following = anchored(sentences)
        except NoAnchorError:
            continue  # BUG
        loss = torch.nn.functional.cross_entropy(model(words), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
