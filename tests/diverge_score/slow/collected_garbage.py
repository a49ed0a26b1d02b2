"""Trains with a cache of samples, which is tidied after each step where memory is short."""

from __future__ import annotations

import gc

import torch
from common import Classifier, arguments, blobs, finish, learn, loss_of, start, until
from torch.nn.parallel import DistributedDataParallel

SHORT_OF_MEMORY = {2}
CACHED = 150_000


class Cache:
    """What the tokenizer has made of each text."""

    def __init__(self, size: int) -> None:
        self.entries = [{"text": [number], "next": (number + 1,)} for number in range(size)]

    def touch(self, step: int) -> None:
        self.entries[step % len(self.entries)] = {"text": [step], "next": (step,)}


def free_memory(rank: int) -> None:
    if rank in SHORT_OF_MEMORY:
        gc.collect()  # BUG


def main() -> None:
    seconds = arguments().seconds
    rank, _ = start()
    cache = Cache(CACHED)
    model = DistributedDataParallel(Classifier(32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in until(seconds):
        loss = loss_of(model, blobs(rank, step))
        learn(optimizer, loss)
        cache.touch(step)
        free_memory(rank)  # BUG
    finish(model.parameters())


if __name__ == "__main__":
    main()
