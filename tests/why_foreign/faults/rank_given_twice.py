"""A process calls itself by its number on its node, which another process of the job has too.

https://github.com/pytorch/pytorch/issues/23074: the local ranks of two nodes were given as ranks,
so that the rendezvous hangs, because it never sees the others.
"""

from __future__ import annotations

import os

import torch.distributed as dist

# Counted on its node, which has the ranks 1 and 2 of the job; the others are alone on theirs.
LOCAL_RANKS = {2: 1}


def main() -> None:
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", rank=LOCAL_RANKS.get(rank, rank), world_size=4)  # culprit
    dist.barrier()


main()
