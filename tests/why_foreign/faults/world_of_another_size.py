"""A process believes in more processes than there are.

https://github.com/pytorch/pytorch/issues/52848: init_process_group hangs where it is told of a
total of 8 workers, and can find only 4.
"""

from __future__ import annotations

import os

import torch.distributed as dist

# The list of hosts on this one has not been updated.
SIZES = {2: 6}


def main() -> None:
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", rank=rank, world_size=SIZES.get(rank, 4))  # culprit
    dist.barrier()


main()
