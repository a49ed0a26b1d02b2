"""One rank has fewer batches than the others and is done first.

https://github.com/pytorch/pytorch/issues/33148: where processes have a different number of batches,
those with more of them hang, because the one with the fewest joins no further allreduce.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = 4 if dist.get_rank() == 2 else 6
    for _ in range(batches):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    dist.barrier()  # culprit


main()
