"""Rank 2 looks for its neighbour's address under a key of another form than it is set.

Ranks exchange samples with neighbours whose addresses they read from a store.
"""

from __future__ import annotations

import datetime as dt
import os
import time

import torch
import torch.distributed as dist

SAMPLES = 32
NAMES = ("alpha", "beta", "gamma", "Delta", "epsilon", "zeta", "eta", "theta")


def key_of(name: str) -> str:
    return f"address/{name.lower()}"


class Directory:
    """Addresses of sites by their names, in a store that rank 0 keeps."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.store = dist.TCPStore(
            os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]),
            size,
            is_master=False,
            wait_for_workers=False,
            timeout=dt.timedelta(hours=1),
        )

    def announce(self, name: str, round_number: int) -> None:
        self.store.set(key_of(name), f"site-{self.rank}:{7000 + round_number}")

    def address(self, name: str) -> str:
        key = f"address/{name}"  # BUG
        return self.store.get(key).decode()  # BUG


def main() -> None:
    dist.init_process_group("gloo", timeout=dt.timedelta(hours=1))
    rank, size = dist.get_rank(), dist.get_world_size()
    directory = Directory(rank, size)
    weights = torch.zeros(SAMPLES)
    generator = torch.Generator().manual_seed(rank)
    for number in range(100_000):
        directory.announce(NAMES[rank], number)
        neighbour = directory.address(NAMES[(rank + 1) % size])
        weights += torch.randn(SAMPLES, generator=generator)
        dist.all_reduce(weights)
        weights /= size
        if rank == 0:
            mean = float(weights.mean())
            print(f"round {number}: {mean:.4f}, next is {neighbour}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
