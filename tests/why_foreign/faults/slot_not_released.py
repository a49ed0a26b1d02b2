"""A reader does not release its slot of a ring in shared memory after an exception.

https://github.com/vllm-project/vllm-ascend/pull/14181: where reading a message raises, the reader's
flag stays as it was, and the writer may wait indefinitely for that slot.
"""

from __future__ import annotations

import tempfile
import time

import torch
import torch.distributed as dist

RING = f"{tempfile.gettempdir()}/ring"
dist.init_process_group("gloo")
rank = dist.get_rank()
# The number of the message that was written, and those that each reader has read.
ring = torch.from_file(RING, shared=True, size=dist.get_world_size(), dtype=torch.int64)


def acquire_write(message: int) -> None:
    while ring[1:].min() < message - 1:
        time.sleep(0.01)
    ring[0] = message


def acquire_read(message: int) -> None:
    while ring[0] < message:
        time.sleep(0.01)
    if rank == 2 and message == 3:
        raise ValueError("message cannot be deserialised")
    ring[rank] = message


def serve() -> int:
    try:
        for message in range(1, 6):
            acquire_write(message) if rank == 0 else acquire_read(message)
    except ValueError:
        return 1
    return 0


dist.all_reduce(torch.tensor([serve()]))  # culprit
