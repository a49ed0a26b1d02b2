"""One rank evaluates with the model that DDP has wrapped, the others wait for it in a barrier.

https://github.com/LibreYOLO/libreyolo/pull/594: validation on one rank through the live DDP model
enters collectives for its buffers, while every other rank waits for the result: a deadlock.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def validate(model: torch.nn.Module) -> torch.Tensor:
    model.eval()
    with torch.no_grad():
        return model(torch.randn(4, 8)).mean()  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    network = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
    model = DistributedDataParallel(network)
    validating = 2
    for _ in range(3):
        model.train()
        model(torch.randn(4, 8)).sum().backward()
    if dist.get_rank() == validating:
        print("accuracy", validate(model).item())
    dist.barrier()


main()
