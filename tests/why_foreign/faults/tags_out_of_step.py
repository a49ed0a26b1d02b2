"""Messages around a ring are tagged by a counter, which is one ahead on one rank.

https://github.com/meta-pytorch/torchcomms/pull/2964: every rank counts its operations for their
tags, and ranks that have left some out wait for other messages than those that are sent.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class Ring:
    def __init__(self) -> None:
        self.operations = 0

    def shift(self, block: torch.Tensor) -> torch.Tensor:
        rank, size = dist.get_rank(), dist.get_world_size()
        received = torch.empty_like(block)
        sent = dist.isend(block, (rank + 1) % size, tag=self.operations)
        dist.recv(received, (rank - 1) % size, tag=self.operations)  # culprit
        sent.wait()
        self.operations += 1
        return received


def main() -> None:
    dist.init_process_group("gloo")
    ring = Ring()
    block = ring.shift(torch.ones(1024))
    if dist.get_rank() == 2:
        ring.operations += 1  # for one that was tried, and not made
    for _ in range(3):
        block = ring.shift(block)  # culprit: call


main()
