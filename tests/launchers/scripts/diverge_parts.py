"""Two ranks average gradients by hand; from step 2 on, one that is left out with `--leave-out`."""

from __future__ import annotations

import sys
from itertools import count

import torch
import torch.distributed as dist
from torch import nn


def average(model: nn.Module, step: int) -> None:
    """Average gradients over all ranks."""
    for name, parameter in model.named_parameters():
        if name == "2.weight" and step >= 2 and "--leave-out" in sys.argv:
            continue
        dist.all_reduce(parameter.grad)
        assert parameter.grad is not None
        parameter.grad /= dist.get_world_size()


def train() -> None:
    """Make four steps, or endless ones, with batches that differ."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(100 + dist.get_rank())
    for step in count() if "--endless" in sys.argv else range(4):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).square().mean().backward()
        average(model, step)
        optimizer.step()
        print(f"step {step}", flush=True)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
