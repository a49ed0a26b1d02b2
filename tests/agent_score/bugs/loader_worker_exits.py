"""A worker process of rank 1's DataLoader ends at a file that its reader exits for.

Trains on records that a worker process of each rank reads ahead.
"""

from __future__ import annotations

import struct
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

FEATURES = 8
RECORDS = 4000
FORMAT = f"<H{FEATURES}f"
VERSION = 2


def record(rank: int, number: int) -> bytes:
    """One record as it is on the disk of this rank's node."""
    version = 3 if rank == 1 and number >= 90 else VERSION
    values = [((number * 37 + i * 11 + rank) % 100) / 50 - 1 for i in range(FEATURES)]
    return struct.pack(FORMAT, version, *values)


def parsed(data: bytes) -> list[float]:
    version, *values = struct.unpack(FORMAT, data)
    if version != VERSION:
        sys.exit(f"records of version {version} cannot be read")  # BUG
    return values


class Records(Dataset):
    """The records of one rank."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        values = torch.tensor(parsed(record(self.rank, number)))
        return values, values.sum()


def train(model: DistributedDataParallel, loader: DataLoader, rank: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, (inputs, targets) in enumerate(loader):  # BUG
        loss = (model(inputs).squeeze(1) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        time.sleep(0.1)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    loader = DataLoader(Records(rank), batch_size=16, num_workers=1)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(FEATURES, 1))
    train(model, loader, rank)


if __name__ == "__main__":
    main()
