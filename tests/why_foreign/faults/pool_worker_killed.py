"""The system kills a worker of a pool, which waits forever for the result of its task.

https://github.com/mapillary/OpenSfM/issues/190: with little memory a process of the pool is killed,
and the others hang indefinitely in multiprocessing.Pool.
"""

from __future__ import annotations

import multiprocessing
import os
import signal

import torch
import torch.distributed as dist


def depth_map(image: int) -> int:
    if image < 0:  # too large for the memory of this node
        os.kill(os.getpid(), signal.SIGKILL)
    return image


def main() -> None:
    dist.init_process_group("gloo")
    images = [1, 2, -3, 4] if dist.get_rank() == 2 else [1, 2, 3, 4]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        maps = pool.map(depth_map, images)  # culprit
    dist.all_reduce(torch.tensor(maps))


main()
