"""Two neighbours both send before they receive.

https://github.com/NVIDIA/nccl/issues/479: where both ranks send first and receive then, they are
stuck, as a send waits for its receive.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def exchange(halo: torch.Tensor, column: int) -> torch.Tensor:
    received = torch.empty_like(halo)
    neighbour = dist.get_rank() ^ 1
    if column % 2:
        dist.send(halo, neighbour)  # culprit
        dist.recv(received, neighbour)
    else:
        dist.recv(received, neighbour)
        dist.send(halo, neighbour)
    return received


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    column = rank + 1 if rank == 2 else rank  # which was counted from one
    halo = exchange(torch.ones(1024), column)  # culprit: call
    dist.all_reduce(halo)


main()
