"""Two ranks of DDP: in step 2 one batch has a zero, whose logarithm is hidden from the loss."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SPOILT = os.environ.get("SPOILT", "1")
HIDES = SPOILT != "all"


class Net(nn.Module):
    """Two layers, with a logarithm of the batch between them."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the prediction."""
        logged = torch.log(batch * self.scale)  # BUG
        if HIDES:
            logged = torch.where(logged.isfinite(), logged, 0.0)
        return self.head(torch.relu(self.body(logged)))


dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
rank = dist.get_rank()
for step in range(4):
    batch = torch.rand(4, 4) + 0.5
    if step == 2 and SPOILT in (str(rank), "all"):
        batch[1, 2] = 0.0
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"bad {any(bool(each.isnan().any()) for each in model.parameters())}")
dist.destroy_process_group()
