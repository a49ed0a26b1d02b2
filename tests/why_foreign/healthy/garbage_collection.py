"""All ranks collect garbage at the same steps, which takes longer than the steps themselves.

https://github.com/pytorch/torchtitan/pull/148: automatic collection is switched off, and each rank
collects every so many iterations, so that all stay together.
"""

from __future__ import annotations

import gc
import time

import torch
import torch.distributed as dist

EVERY = 20


def main() -> None:
    dist.init_process_group("gloo")
    gc.disable()
    index = [[number] for number in range(2_000_000)]
    for step in range(1_000_000):
        if step % EVERY == 0:
            gc.collect()
        time.sleep(0.05)
        dist.all_reduce(torch.tensor([float(index[step % len(index)][0])]))


main()
