"""The input of one rank does not go through a layer, whose gradients therefore never come.

https://github.com/pytorch/pytorch/issues/128949: with find_unused_parameters=False the error about
parameters that got no gradient is not raised in the iteration in which it happens.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Toy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = torch.nn.Linear(8, 8)
        self.b = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        return x if dist.get_rank() == 2 else self.b(x)  # culprit: branch


def evaluate(model: torch.nn.Module) -> float:
    correct = torch.ones(1)
    dist.all_gather([torch.empty(1) for _ in range(4)], correct)  # culprit
    return correct.item()


def main() -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(Toy(), find_unused_parameters=False)
    for _ in range(5):
        model(torch.randn(2, 8)).mean().backward()
        evaluate(model)


main()
