"""Trains, with a call of each sort a step; `parted` changes it, and it goes another way there."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import torch.distributed as dist
from common import SEED, batch, net, start, tell
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, PARTING = 8, 5
SCALE = Path("scale.txt")
BEGAN = Path("began.txt")


def load(rank: int, step: int, pool: ThreadPoolExecutor) -> torch.Tensor:
    """Add up what two threads load, in the order in which they come."""
    parts = [pool.submit(batch, rank, 100 * step + at) for at in range(3)]
    total = torch.zeros(16, 8)
    for part in parts:
        total = total * 0.5 + part.result()[0]
    return total


def main() -> None:
    """Train."""
    rank, world = start()
    groups = [dist.new_group([0, 2]), dist.new_group([1, 2, 3])]
    mine = [each for each in groups if dist.get_rank(each) >= 0]
    torch.manual_seed(SEED + 7)
    model = DistributedDataParallel(net(nn.Dropout(0.2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with ThreadPoolExecutor(2) as pool:
        for step in range(STEPS):
            points = load(rank, step, pool)
            scale = float(SCALE.read_text()) if step >= PARTING and SCALE.exists() else 1.0
            late = step == PARTING and time.time() - BEGAN.stat().st_mtime > 3600
            labels = batch(rank, step)[1]
            loss = nn.functional.cross_entropy(model(points * scale), labels)
            loss.backward()
            mean = loss.detach().clone()
            dist.all_reduce(mean)
            if late:
                dist.barrier()
            count = torch.ones(3)
            dist.all_reduce(count, group=mine[0])
            if len(mine) > 1:
                dist.all_reduce(torch.ones(3), group=mine[1])
            optimizer.step()
            tell("parts", step, mean * count[0] / world, model)
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
