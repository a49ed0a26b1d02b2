"""Two ranks of DDP with all that differs by design; with PART, they part.

`PART=sync`: gradients of step 3 are not exchanged. `PART=rate`: from step 3 on, all learn faster
than without. A path: rank 1 changes its head once that file
is there; such a job does not end.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PART = os.environ.get("PART", "")
STEPS, PARTS_OF_BATCH = 12, 2


class Net(nn.Module):
    """Two layers, with a normalisation and dropout between them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(8, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the prediction."""
        return self.head(self.drop(torch.relu(self.norm(self.body(batch)))))


def main() -> None:
    """Train."""
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
    torch.manual_seed(1 + dist.get_rank())
    for step in count() if PART.startswith("/") else range(STEPS):
        optimizer.zero_grad()
        for part in range(PARTS_OF_BATCH):
            is_last = part == PARTS_OF_BATCH - 1
            exchanges = is_last and not (PART == "sync" and step == 3)
            with nullcontext() if exchanges else model.no_sync():
                loss = model(torch.randn(8, 4)).pow(2).mean()
                scaler.scale(loss).backward()
        if PART == "rate" and step == 3:
            optimizer.param_groups[0]["lr"] = 0.011
        scaler.step(optimizer)  # STEP
        scaler.update()
        if PART.startswith("/") and dist.get_rank() == 1 and Path(PART).exists():
            with torch.no_grad():
                model.module.head.weight.mul_(1.01)  # BUG
        print(f"step {step}", flush=True)
    dist.destroy_process_group()


main()
