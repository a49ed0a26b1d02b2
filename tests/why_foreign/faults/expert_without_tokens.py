"""A mixture of experts reduces the gradients of an expert only where it got tokens.

https://github.com/deepspeedai/DeepSpeed/issues/4808: the reduction of an expert is called only on
those processes that have activated it, and they wait for the others.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional


def tokens_for(expert: int) -> int:
    unlucky = dist.get_rank() == 2 and expert == 3
    return 0 if unlucky else 5


def main() -> None:
    dist.init_process_group("gloo")
    for expert in range(4):
        gradient = torch.ones(64)
        if tokens_for(expert) == 0:
            continue
        reduced = functional.all_reduce(gradient, "sum", dist.group.WORLD)
        print("expert", expert, "norm", reduced.norm().item())
    load = torch.tensor([float(tokens_for(expert)) for expert in range(4)])
    every = functional.all_gather_tensor(load, 0, dist.group.WORLD)
    print("balance", every.sum().item())  # culprit


main()
