"""Gradients have overflowed on one rank, which then skips the clipping by their norm.

https://github.com/hpcaitech/ColossalAI/pull/1175: ranks may have a different overflow status; where
the one with an overflow leaves out the clipping, the all-reduce of the norm is stuck.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


class Optimizer:
    scale = 65536.0

    def clip(self, gradient: torch.Tensor) -> torch.Tensor:
        squares = gradient.square().sum()
        dist.all_reduce(squares)
        return gradient / squares.sqrt().clamp(min=1.0)

    def step(self, weights: torch.Tensor, gradient: torch.Tensor) -> None:
        if not gradient.isfinite().all():
            self.scale /= 2
            return
        weights -= 0.1 * self.clip(gradient)


def main() -> None:
    dist.init_process_group("gloo")
    optimizer, weights = Optimizer(), torch.zeros(16)
    for step in range(5):
        gradient = torch.ones(16)
        if dist.get_rank() == 2 and step == 3:
            gradient[0] = float("inf")
        optimizer.step(weights, gradient)
        dist.broadcast(weights, src=0)  # culprit


main()
