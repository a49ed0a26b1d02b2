"""Four ranks of torch (gloo) that add up numbers; rank 2 comes late to each sum.

Arguments: the first port (rank N listens on it + N), and a folder. What is touched there lets the
ranks go on: `late` rank 2 to the first sum, whose time-out is FIRST; `short` the others to one with
a time-out of SHORT seconds, to which rank 2 comes once all have set that; `end` all to their end.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path

import debugpy  # noqa: T100
import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _set_pg_timeout

FIRST, SHORT = 280, 6
port, folder = int(sys.argv[1]), Path(sys.argv[2])
dist.init_process_group("gloo", timeout=timedelta(seconds=FIRST))
rank = dist.get_rank()
dist.barrier()
debugpy.configure(subProcess=False)
debugpy.listen(("127.0.0.1", port + rank))  # noqa: T100
debugpy.wait_for_client()  # noqa: T100


def add_up(number: int) -> int:
    total = torch.tensor([number])
    if rank == 2:
        number += 1  # late
    dist.all_reduce(total)
    return int(total)


def say(line: str) -> None:
    """In one write: the ranks share their output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def wait_for(name: str) -> None:
    while not (folder / name).exists():
        time.sleep(0.02)


if rank == 2:
    wait_for("late")
say(f"sum {add_up(rank)}")
_set_pg_timeout(timedelta(seconds=SHORT))
(folder / f"short-{rank}").touch()  # after the sum
if rank != 2:
    wait_for("short")
else:
    for other in (0, 1, 3):
        wait_for(f"short-{other}")
say(f"sum {add_up(rank * 10)}")
wait_for("end")
