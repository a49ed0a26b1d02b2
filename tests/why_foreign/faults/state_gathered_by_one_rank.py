"""The main process gathers the state of the model, the others wait for everyone.

https://github.com/huggingface/accelerate/issues/2690: get_state_dict under is_main_process, and
wait_for_everyone in its else; all processes hang after that.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def get_state_dict(shard: torch.Tensor) -> torch.Tensor:
    shards = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
    dist.all_gather(shards, shard)  # culprit
    return torch.cat(shards)


def main() -> None:
    dist.init_process_group("gloo")
    shard = torch.ones(64)
    is_main_process = dist.get_rank() == 2
    dist.all_reduce(shard)
    if is_main_process:
        torch.save(get_state_dict(shard), "/dev/null")
    else:
        dist.barrier()


main()
