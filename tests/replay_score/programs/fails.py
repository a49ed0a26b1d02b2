"""Trains, and fails in rank 2 at step 37: `fails.py exception`, `nan` or `kill`."""

from __future__ import annotations

import os
import signal
import sys
from math import isfinite
from pathlib import Path

import torch
import torch.distributed as dist
from common import batch, net, start, tell
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, FAILING, RANK = 60, 37, 2
KILLED = Path("killed")


def main() -> None:
    """Train until it fails."""
    rank, _ = start()
    model = DistributedDataParallel(net(nn.Dropout(0.1)))
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        points, labels = batch(rank, step)
        fails = step == FAILING and rank == RANK
        if fails and sys.argv[1] == "nan":
            points[3, 2] = (points[3, 2] - points[3, 2]) / 0
        loss = nn.functional.cross_entropy(model(points), labels)
        if not isfinite(float(loss.detach())):
            raise ValueError(f"loss is {float(loss)} at step {step}")
        if fails and sys.argv[1] == "exception":
            raise RuntimeError(f"loss was {float(loss.detach()).hex()} at step {step}")
        loss.backward()
        if fails and sys.argv[1] == "kill" and not KILLED.exists():  # at home nobody kills it
            KILLED.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        optimizer.step()
        tell(sys.argv[1], step, mean, model)
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
