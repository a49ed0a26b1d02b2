"""Rank 0 writes a large checkpoint, piece by piece; the others wait for it, as they should.

https://github.com/mosaicml/llm-foundry/pull/733: saving takes significantly longer on rank 0; the
others wait until it is complete.
"""

from __future__ import annotations

import os
import tempfile
import time
from typing import IO

import torch
import torch.distributed as dist

PIECES = 900
PIECE = bytes(1 << 20)


def save(file: IO[bytes]) -> None:
    for _ in range(PIECES):
        file.seek(0)
        file.write(PIECE)
        os.fsync(file.fileno())
        time.sleep(0.1)  # a slow store


def main() -> None:
    dist.init_process_group("gloo")
    while True:
        for _ in range(20):
            dist.all_reduce(torch.ones(64))
            time.sleep(0.1)
        if dist.get_rank() == 0:
            with tempfile.TemporaryFile() as file:
                save(file)
        dist.barrier()  # until the checkpoint is there


main()
