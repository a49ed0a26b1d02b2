"""Adds up over MPI in two ranks, of which the last one loads slowly, until a file is there."""

from __future__ import annotations

import sys
import time
from array import array
from pathlib import Path

from mpi4py import MPI

GO_ON = Path(sys.argv[1])


def load(rank: int) -> array[float]:
    """Return numbers."""
    time.sleep(0.1 if rank else 0.005)
    return array("d", [1.0] * 8)


def main() -> None:
    """Add."""
    comm = MPI.COMM_WORLD
    total = array("d", [0.0] * 8)
    while not comm.bcast(GO_ON.exists()):
        comm.Allreduce(load(comm.rank), total)


main()
