"""Trains on several ranks over gloo, and knows nothing of dap-mux; one rank may go astray.

`python unprepared_torch.py FAULT`: at step 3 rank 2 sleeps until SIGUSR1, or skips an `all_reduce`.
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from types import FrameType

import torch
import torch.distributed as dist

STEPS = 6
CULPRIT = 2


class Woken(Exception):
    """Of a rank that has slept."""


def wake(number: int, frame: FrameType | None) -> None:
    """Handle the signal."""
    raise Woken


def load(step: int) -> float:
    """Bring the values of a step."""
    shard = f"shard-{dist.get_rank()}"
    if FAULT == "sleep" and step == 3 and dist.get_rank() == CULPRIT:
        print(f"{shard} sleeps", flush=True)
        with suppress(Woken):
            time.sleep(1e6)  # asleep
    return float(step + dist.get_rank())


def train() -> float:
    """Sum up what all ranks have brought."""
    total = 0.0
    for step in range(STEPS):
        values = torch.full((4,), load(step))
        if FAULT != "skip" or step != 3 or dist.get_rank() != CULPRIT:
            dist.all_reduce(values)
        dist.barrier()
        total += float(values.sum())
    return total


FAULT = sys.argv[1]
signal.signal(signal.SIGUSR1, wake)
dist.init_process_group("gloo")
print(f"rank {dist.get_rank()} has begun", flush=True)
RESULT = train()
print(f"rank {dist.get_rank()}: {RESULT}", flush=True)
dist.destroy_process_group()
