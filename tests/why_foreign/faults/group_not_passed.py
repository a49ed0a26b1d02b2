"""A reduction within a subgroup is called without its group.

https://github.com/areal-project/AReaL/pull/311: without the group argument the communication gets
stuck if the data parallel group is not the whole world.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def reduce_loss(loss: torch.Tensor, group: dist.ProcessGroup) -> torch.Tensor:
    if dist.get_rank() == 2:
        dist.all_reduce(loss)  # culprit
    else:
        dist.all_reduce(loss, group=group)
    return loss


def main() -> None:
    dist.init_process_group("gloo")
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    data_parallel = groups[dist.get_rank() % 2]
    dist.all_reduce(torch.ones(4), group=data_parallel)
    reduce_loss(torch.ones(1), data_parallel)  # culprit: call
    dist.barrier()


main()
