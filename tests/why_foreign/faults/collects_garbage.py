"""A rank collects garbage after each sample, with millions of objects to look through.

https://github.com/marin-community/marin/issues/9205: full garbage collections over millions of
long-lived objects, at different times on different ranks, delay the rank and all that wait for it.
"""

from __future__ import annotations

import gc

import torch
import torch.distributed as dist


def index(entries: int) -> list[list[int]]:
    """The index of the dataset, which stays in memory."""
    return [[number] for number in range(entries)]


def train(samples: int, entries: int) -> None:
    kept = index(entries)
    for _ in range(samples):
        gc.collect()  # culprit
    print(len(kept))


def main() -> None:
    dist.init_process_group("gloo")
    loaded = dist.get_rank() == 2
    for _ in range(5):
        train(20_000 if loaded else 1, 1_000_000 if loaded else 10)  # culprit: call
        dist.all_reduce(torch.ones(4))


main()
