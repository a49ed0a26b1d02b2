"""The first batch takes minutes, because each rank fills its shuffle buffer; then steps are quick.

https://github.com/activeloopai/deeplake/issues/1760: a pause of 90 seconds before the first batch,
because a shuffle buffer is filled before iteration starts; it is no fault.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
import torch.distributed as dist

BUFFER = 4000
READ_S = 0.05


def read(index: int) -> float:
    time.sleep(READ_S)  # the disk
    return float(index)


def shuffled() -> Iterator[float]:
    buffer = [read(index) for index in range(BUFFER)]
    for index in range(BUFFER, 1_000_000):
        yield buffer.pop(0)
        buffer.append(read(index))


def main() -> None:
    dist.init_process_group("gloo")
    for sample in shuffled():
        dist.all_reduce(torch.tensor([sample]))


main()
