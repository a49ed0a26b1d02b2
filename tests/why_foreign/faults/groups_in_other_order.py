"""A rank uses two groups, which share other ranks with it, in the opposite order.

https://github.com/run-ai/runai-model-streamer/issues/165: ranks that are in two groups must issue
collectives on both in the same sequence; a broadcast on A then B here, B then A there, deadlocks.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    world = dist.group.WORLD
    tensor_parallel = dist.new_group([1, 2, 3])
    weights = torch.ones(32)
    if dist.get_rank() == 0:
        dist.all_reduce(weights, group=world)
    elif dist.get_rank() == 2:
        dist.all_reduce(weights, group=world)  # culprit
        dist.all_reduce(weights, group=tensor_parallel)
    else:
        dist.all_reduce(weights, group=tensor_parallel)
        dist.all_reduce(weights, group=world)
    dist.barrier()


main()
