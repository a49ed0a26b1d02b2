"""A thread saves by collectives on the same group as the training, which did not wait for it.

https://github.com/KempnerInstitute/KempnerForge/issues/104: a thread's collectives of the save and
the main thread's are in the same group, and ranks do not call them in the same order.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist


def save(step: int) -> list[object]:
    time.sleep(0.7)  # copies the state first
    plans: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(plans, {"step": step, "rank": dist.get_rank()})
    return plans


def main() -> None:
    dist.init_process_group("gloo")
    executor = ThreadPoolExecutor(max_workers=1)
    for step in range(4):
        saving = executor.submit(save, step)
        if dist.get_rank() != 2 or step < 1:  # rank 2 takes the save for one that needs no wait
            saving.result()
        gradient = torch.ones(64)
        dist.all_reduce(gradient)  # culprit


main()
