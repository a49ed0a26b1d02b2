"""Only one rank tests whether its patience is over, and leaves the loop.

https://github.com/ACEsuit/mace/pull/1216: the loop over the epochs was left by the one rank that
tested the condition; the others were not told.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def fit(epochs: int, patience: int) -> int:
    for epoch in range(epochs):
        loss = torch.ones(8) / (epoch + 1)
        dist.all_reduce(loss)
        if dist.get_rank() == 2 and epoch >= patience:
            return epoch
    return epochs


def main() -> None:
    dist.init_process_group("gloo")
    trained = torch.tensor([fit(epochs=8, patience=3)])
    every = [torch.zeros_like(trained) for _ in range(dist.get_world_size())]
    dist.all_gather(every, trained)  # culprit


main()
