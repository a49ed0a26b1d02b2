"""One rank gathers to the rank of its group, the others to the rank of the job.

https://github.com/vllm-project/vllm/pull/2528: the destination of torch.distributed.gather is a
global rank also where a group is given, and another rank was passed.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def gather(logits: torch.Tensor, destination: int) -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    place = [torch.empty_like(logits) for _ in range(size)] if rank == destination else None
    dist.gather(logits, place, dst=destination)  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    logits = torch.ones(32)
    gather(logits, 0)
    gather(logits, 2 if dist.get_rank() == 2 else 0)
    dist.barrier()


main()
