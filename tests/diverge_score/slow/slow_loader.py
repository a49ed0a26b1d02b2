"""Trains on images from a disk, of which one rank's is slow."""

from __future__ import annotations

import time

import torch
from common import Deadline, arguments, finish, learn, start
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

SEEK = {1: 0.006}  # s; the disk that is nearly full
USUAL_SEEK = 0.0002


class Images(Dataset[tuple[torch.Tensor, int]]):
    """Images that are read one by one."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.seek = SEEK.get(rank, USUAL_SEEK)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(self.seek)  # BUG
        generator = torch.Generator().manual_seed(index * 8 + self.rank)
        return torch.rand(1, 8, 8, generator=generator), index % 2


class Network(nn.Module):
    """One convolution and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 6, 3)
        self.head = nn.Linear(6 * 36, 2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.convolution(images)).flatten(1))


def train(model: nn.Module, loader: DataLoader[tuple[torch.Tensor, int]], seconds: float) -> int:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    deadline, steps = Deadline(seconds), 0
    while True:
        for images, labels in loader:  # BUG
            loss = nn.functional.cross_entropy(model(images), labels)
            learn(optimizer, loss)
            steps += 1
            if deadline.over():
                return steps


def main() -> None:
    seconds = arguments().seconds
    rank, _ = start()
    model = DistributedDataParallel(Network())
    steps = train(model, DataLoader(Images(rank), batch_size=8, shuffle=True), seconds)
    if rank == 0:
        print(f"{steps} steps", flush=True)
    finish(model.parameters())


if __name__ == "__main__":
    main()
