"""Twenty quick steps, then a pause of all ranks for the logs, and so on.

https://github.com/wandb/wandb/issues/7423: the whole training pauses every fixed number of steps,
and returns to normal.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(32, 32))
    for step in range(1, 1_000_000):
        model(torch.randn(4, 32)).sum().backward()
        if step % 20 == 0:
            time.sleep(10)  # logs are flushed


main()
