"""The rank that saves the checkpoint enters a barrier, which is inside of saving.

https://github.com/alan-turing-institute/autocast/pull/386: save_checkpoint ends in a barrier and
was called inside a condition that holds on one rank only.
"""

from __future__ import annotations

import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def save_checkpoint(model: torch.nn.Module) -> None:
    with tempfile.TemporaryFile() as file:
        torch.save(model.state_dict(), file)
    dist.barrier()  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(8, 8))
    saves = dist.get_rank() == 2
    for step in range(10):
        model(torch.randn(2, 8)).sum().backward()
        if step == 4 and saves:
            save_checkpoint(model)


main()
