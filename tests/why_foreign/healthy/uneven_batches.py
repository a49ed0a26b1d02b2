"""Batches of different lengths: in each step another rank is the last.

https://github.com/lightseekorg/TorchSpec/issues/13: sequences differ in length, and the faster
ranks wait at the reduction for the one with the longest.
"""

from __future__ import annotations

import random
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    lengths = random.Random(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Linear(16, 16))
    for _ in range(1_000_000):
        seconds = lengths.uniform(0.05, 2)
        time.sleep(seconds)  # the device computes
        model(torch.randn(4, 16)).sum().backward()


main()
