"""The database of the runs is locked, and a rank waits until it is not.

https://github.com/aimhubio/aim/issues/3056: after a crash the start hangs for ever, because the
sqlite database is locked although no process should be writing to it.
"""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist


def begin_run(database: Path) -> int:
    with sqlite3.connect(database, timeout=3600) as runs:
        runs.execute("create table if not exists runs (number integer)")  # culprit
        return len(runs.execute("select number from runs").fetchall())


def main() -> None:
    dist.init_process_group("gloo")
    database = Path(tempfile.mkdtemp()) / "runs.sqlite"
    left = sqlite3.connect(database, isolation_level=None)
    if dist.get_rank() == 2:
        left.execute("begin exclusive")  # what a run before has left
    runs = begin_run(database)  # culprit: call
    dist.all_reduce(torch.tensor([runs]))


main()
