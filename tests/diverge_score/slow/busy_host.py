"""Trains on four hosts; somebody else's job runs on the last one."""

from __future__ import annotations

import os
import subprocess

import torch
from common import arguments, finish, start, until
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, BATCH = 256, 64
SHARED = {3}


def share_processor() -> None:
    """Stay on one processor, beside somebody else's job, which goes first."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # BUG
    loop = "while kill -0 $PPID 2>/dev/null; do :; done"  # ends with its parent
    nothing = subprocess.DEVNULL
    subprocess.Popen(["sh", "-c", loop], stdin=nothing, stdout=nothing, stderr=nothing)
    os.nice(7)  # BUG


class Network(nn.Module):
    """Three wide layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(inputs))  # BUG
        hidden = torch.relu(self.second(hidden))  # BUG
        return self.head(hidden).squeeze(1)  # BUG


def samples(rank: int, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(4 * step + rank)
    return torch.randn(BATCH, WIDTH, generator=generator)  # BUG


def main() -> None:
    seconds = arguments().seconds
    rank, _ = start()
    if rank in SHARED:
        share_processor()  # BUG
    model = DistributedDataParallel(Network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for step in until(seconds):
        inputs = samples(rank, step)  # BUG
        loss = (model(inputs) - inputs.mean(1)).square().mean()  # BUG
        optimizer.zero_grad()  # BUG
        loss.backward()  # BUG
        optimizer.step()  # BUG
    finish(model.parameters())


if __name__ == "__main__":
    main()
