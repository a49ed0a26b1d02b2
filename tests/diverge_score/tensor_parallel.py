"""The two ends of a tensor parallel block, as Megatron has them."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


class Copy(torch.autograd.Function):
    """The same input for all ranks, whose gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        """Pass it on."""
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Add up what the ranks' parts make of it."""
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class Reduce(torch.autograd.Function):
    """The sum of what the ranks' parts give."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        """Add up."""
        total = value.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Pass it on."""
        return gradient


def column(rank: int, world: int, rows: int, columns: int) -> torch.nn.Parameter:
    """Return this rank's rows of a weight that all ranks draw alike."""
    whole = torch.randn(rows, columns) / columns**0.5
    return torch.nn.Parameter(whole.chunk(world, 0)[rank].clone())


def row(rank: int, world: int, rows: int, columns: int) -> torch.nn.Parameter:
    """Return this rank's columns of a weight that all ranks draw alike."""
    whole = torch.randn(rows, columns) / columns**0.5
    return torch.nn.Parameter(whole.chunk(world, 1)[rank].clone())
