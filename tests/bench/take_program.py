"""A rank of `tests.bench.comm.taken_home`: prints the CPU seconds of a step."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, WARM = 30, 5


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()]
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(1024, 1024)))
    optimizer = torch.optim.AdamW(model.parameters())
    start = 0.0
    for step in range(STEPS):
        if step == WARM:
            start = time.process_time()
        model(torch.randn(64, 1024)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("step", dist.get_rank(), (time.process_time() - start) / (STEPS - WARM), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
