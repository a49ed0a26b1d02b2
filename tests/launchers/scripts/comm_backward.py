"""Three ranks of DDP: in step 2, rank 2 stays away from the backward pass until a file is there."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

GO_ON = Path(sys.argv[1])


def read_checkpoint() -> None:
    """Wait for somebody who is no rank."""
    while not GO_ON.exists():
        time.sleep(0.05)


dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
torch.manual_seed(dist.get_rank())
aside = dist.new_group(group_desc="aside")
beside = []
for step in range(4):
    loss = model(torch.randn(4, 8)).pow(2).mean()
    if step == 2:
        if os.environ["RANK"] == "2":
            read_checkpoint()
        # Nobody waits for it before the end.
        beside.append(dist.all_reduce(torch.ones(2), group=aside, async_op=True))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
for work in beside:
    work.wait()
total = sum(parameter.double().sum() for parameter in model.parameters())
print(f"weights {float(total).hex()}")
dist.destroy_process_group()
