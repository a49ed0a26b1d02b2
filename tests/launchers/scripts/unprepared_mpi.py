"""Sums up over MPI on several ranks, and knows nothing of dap-mux; one rank may go astray.

`python unprepared_mpi.py FAULT`: at step 3 rank 2 sleeps until SIGUSR1, or skips an `allreduce`.
"""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from types import FrameType

from mpi4py import MPI

STEPS = 6
CULPRIT = 2


class Woken(Exception):
    """Of a rank that has slept."""


def wake(number: int, frame: FrameType | None) -> None:
    """Handle the signal."""
    raise Woken


def load(step: int) -> float:
    """Bring the values of a step."""
    shard = f"shard-{comm.Get_rank()}"
    if FAULT == "sleep" and step == 3 and comm.Get_rank() == CULPRIT:
        print(f"{shard} sleeps", flush=True)
        with suppress(Woken):
            time.sleep(1e6)  # asleep
    return float(step + comm.Get_rank())


def train() -> float:
    """Sum up what all ranks have brought."""
    total = 0.0
    for step in range(STEPS):
        value = load(step)
        if FAULT != "skip" or step != 3 or comm.Get_rank() != CULPRIT:
            value = comm.allreduce(value)
        comm.barrier()
        total += value
    return total


FAULT = sys.argv[1]
signal.signal(signal.SIGUSR1, wake)
comm = MPI.COMM_WORLD
print(f"rank {comm.Get_rank()} has begun", flush=True)
RESULT = train()
print(f"rank {comm.Get_rank()}: {RESULT}", flush=True)
