"""A rank does not take part in creating the group for updates of the weights.

https://github.com/sgl-project/sglang/issues/4096: all hang after the process group for the update
of the weights has been begun, because not all of them come to it.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

# This one was started with a configuration without updates.
UPDATES = {2: False}


def main() -> None:
    dist.init_process_group("gloo")
    dist.barrier()
    if UPDATES.get(dist.get_rank(), True):
        update = dist.new_group([0, 1, 2, 3])
        dist.broadcast(torch.ones(8), src=0, group=update)
    dist.all_reduce(torch.ones(8))  # culprit


main()
