"""Trains with a cache of samples, which is tidied after each step where memory is short."""

from __future__ import annotations

import gc

import torch
from common import Deadline, arguments, blobs, finish, start
from torch import nn
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


class Classifier(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(8, 32)
        self.head = nn.Linear(32, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.hidden(inputs)))


def main() -> None:
    seconds = arguments().seconds
    rank, _ = start()
    cache = Cache(CACHED)
    model = DistributedDataParallel(Classifier())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    deadline, step = Deadline(seconds), 0
    while not deadline.over():
        inputs, labels = blobs(rank, step)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        cache.touch(step)
        free_memory(rank)  # BUG
        step += 1
    if rank == 0:
        print(f"{step} steps", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
