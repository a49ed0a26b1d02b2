"""Trains on several ranks with torch.distributed over gloo."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

from tests.why_score.jobs.faults import RANK, SIZE, Shares, wait_for_config


class Shards(Dataset):  # type: ignore[misc]
    """Batches from the disk."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares

    def __len__(self) -> int:
        """Return how many there are."""
        return self._shares.steps()

    def __getitem__(self, step: int) -> torch.Tensor:
        """Read one."""
        self._shares.at("load", step)
        return torch.full((SIZE,), float(step))


def exchange(shares: Shares, values: torch.Tensor, step: int) -> torch.Tensor:
    """Give the edge to the right neighbour, and take that of the left one."""
    left, right = (shares.rank - 1) % shares.size, (shares.rank + 1) % shares.size
    edge = torch.zeros_like(values)
    if shares.all_have("recv-before-send", step):
        dist.recv(edge, src=left)
    if shares.has("recv-pair", step, beside=1):
        dist.recv(edge, src=right if shares.rank == RANK else left)
    sent = None if shares.has("send-left-out", step) else dist.isend(values, dst=right)
    dist.recv(edge, src=left)
    if sent is not None:
        sent.wait()
    return edge


def reduce(shares: Shares, group: dist.ProcessGroup, values: torch.Tensor, step: int) -> None:
    """Sum up the gradient, first in the group and then over all."""
    if shares.has("sub-group", step):
        dist.all_reduce(values)
    dist.all_reduce(values, group=group)
    if shares.has("skipped", step):
        return
    if shares.has("swapped", step):
        dist.barrier()
    if shares.has("other-kind", step):
        dist.broadcast(values, src=0)
    if shares.has("extra", step):
        dist.all_reduce(values)
    if shares.has("wrong-shape", step):
        values = values[: SIZE // 2].clone()
    if shares.has("wrong-dtype", step):
        values = values.half()
    dist.all_reduce(values)


def train(shares: Shares, group: dist.ProcessGroup) -> None:
    """Take one step after the other."""
    workers = int(os.environ.get("WHY_WORKERS", "0"))
    loader = DataLoader(Shards(shares), batch_size=None, num_workers=workers)
    for step, values in enumerate(loader):
        shares.progress(step)
        shares.at("compute", step)
        edge = exchange(shares, values, step)
        reduce(shares, group, edge, step)
        shares.at("checkpoint", step)
        dist.barrier()
    shares.at("end", shares.steps())


def main() -> None:
    """Meet the others, train, and part."""
    wait_for_config()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group(list(range(first, size, 2))) for first in range(min(2, size))]
    shares = Shares(rank, size)
    try:
        train(shares, groups[rank % 2])
    except Exception as error:
        shares.tell(error)
        dist.barrier()  # all write what they have before the job ends
        raise
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
