"""A rank waits in a barrier with a lock, for which the others wait before theirs.

https://github.com/pmodels/mpich/issues/1997: one task holds the exclusive lock in its second
barrier; the other waits for the lock before it can reach that barrier.
"""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

import torch.distributed as dist

TABLE = Path(tempfile.gettempdir(), "table")


def owner() -> None:
    with TABLE.open("a") as table:
        fcntl.flock(table, fcntl.LOCK_EX)
        dist.barrier()
        table.write("header\n")
        dist.barrier()  # culprit


def guest() -> None:
    dist.barrier()
    with TABLE.open("a") as table:
        fcntl.flock(table, fcntl.LOCK_EX)
        table.write("row\n")
    dist.barrier()


def main() -> None:
    dist.init_process_group("gloo")
    owner() if dist.get_rank() == 2 else guest()


main()
