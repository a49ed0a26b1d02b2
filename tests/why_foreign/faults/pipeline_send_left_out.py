"""A stage of a pipeline does not pass on the last microbatch of a batch.

https://github.com/pytorch/gloo/issues/308: in pipeline parallelism by isend and irecv with several
sends and receives outstanding, the receiving side hangs forever.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

MICROBATCHES = 5


def stage(rank: int, last: int) -> None:
    for microbatch in range(MICROBATCHES):
        activations = torch.full((8,), float(microbatch))
        if rank > 0:
            dist.recv(activations, src=rank - 1)
        if rank == 2 and microbatch == MICROBATCHES - 1:
            continue  # culprit: branch
        if rank < last:
            dist.send(activations, dst=rank + 1)


def main() -> None:
    dist.init_process_group("gloo")
    stage(dist.get_rank(), dist.get_world_size() - 1)
    dist.barrier()  # culprit


main()
