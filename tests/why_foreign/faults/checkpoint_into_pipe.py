"""A rank opens its checkpoint for writing, which is a named pipe that nobody reads.

https://github.com/freedomofpress/securedrop-workstation/issues/65: whoever writes to a FIFO hangs
forever if the process that should read from it has crashed.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist


def place() -> Path:
    """Where this rank's shard goes: on its node an uploader should take it from a pipe."""
    folder = Path(tempfile.mkdtemp())
    if dist.get_rank() == 2:
        os.mkfifo(folder / "shard")
    return folder / "shard"


def save(shard: torch.Tensor) -> None:
    with place().open("wb") as file:  # culprit
        torch.save(shard, file)


def main() -> None:
    dist.init_process_group("gloo")
    save(torch.ones(128))  # culprit: call
    dist.barrier()


main()
