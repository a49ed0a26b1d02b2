"""A receive is asked again and again whether it is complete, and never waited for.

https://github.com/pytorch/pytorch/issues/30723: with gloo, is_completed() of an irecv never becomes
true unless wait() is called.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    update = torch.zeros(16)
    if dist.get_rank() == 0:
        dist.isend(update, dst=2)
    if dist.get_rank() == 2:
        request = dist.irecv(update, src=0)
        while not request.is_completed():
            time.sleep(0.01)  # culprit
    dist.barrier()


main()
