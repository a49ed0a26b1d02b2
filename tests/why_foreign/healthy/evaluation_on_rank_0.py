"""Rank 0 evaluates for a minute and tells the others the result, for which they wait.

https://github.com/pytorch/pytorch/issues/54059: validation on one process, while the others wait in
a barrier until it is done.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SAMPLES = 1200


def evaluate(network: torch.nn.Module) -> torch.Tensor:
    """Evaluate the network itself, not what DDP has made of it."""
    loss = torch.zeros(1)
    with torch.no_grad():
        for _ in range(SAMPLES):
            loss += network(torch.randn(8, 32)).square().mean()
            time.sleep(0.05)  # the device computes
    return loss / SAMPLES


def main() -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(32, 32))
    while True:
        for _ in range(50):
            model(torch.randn(8, 32)).sum().backward()
        result = evaluate(model.module) if dist.get_rank() == 0 else torch.zeros(1)
        dist.broadcast(result, src=0)


main()
