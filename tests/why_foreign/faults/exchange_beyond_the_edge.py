"""A rank exchanges its edge with a neighbour that does not know of it.

https://github.com/pdidev/pdi/issues/161: the example deadlocks with a process that never leaves a
Sendrecv, which should do nothing, as it has no neighbour there.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

# Two rows of two; the last column of a row has no neighbour on its right.
WIDTH = 2


def exchange(edge: torch.Tensor, wraps: bool) -> None:
    rank = dist.get_rank()
    if rank % WIDTH == 0:
        dist.send(edge, dst=rank + 1)
    else:
        dist.recv(edge, src=rank - 1)
    if wraps:
        dist.recv(edge, src=1)  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    edge = torch.ones(16)
    for step in range(3):
        exchange(edge, wraps=dist.get_rank() == 2 and step == 1)  # culprit: call
        dist.all_reduce(edge)


main()
