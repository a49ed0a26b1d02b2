"""Each step takes half a minute, on all ranks alike.

https://github.com/marin-community/marin/issues/9205: a large run that goes on takes 17 to 18
seconds for each update.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

STEP_S = 30


def step(number: int) -> torch.Tensor:
    time.sleep(STEP_S)  # the device computes
    return torch.tensor([float(number)])


def main() -> None:
    dist.init_process_group("gloo")
    for number in range(1000):
        dist.all_reduce(step(number))


main()
