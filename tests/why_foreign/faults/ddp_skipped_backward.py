"""A batch without usable samples is skipped by the rank that got it, with its backward.

https://github.com/NVIDIA-NeMo/Automodel/pull/2468: one rank caught "no valid anchors" and went on
without a backward, while the others waited for a gradient reduction that never came.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class NoValidAnchorsError(Exception):
    """All samples of a batch are too short."""


def lengths(step: int) -> list[int]:
    short = dist.get_rank() == 2 and step == 3
    return [1, 2] if short else [8, 16]


def main() -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    metrics: list[object] = [None] * dist.get_world_size()
    for step in range(10):
        loss = 0.0
        try:
            if max(lengths(step)) < 4:
                raise NoValidAnchorsError
            out = model(torch.randn(4, 8)).sum()
            out.backward()
            loss = out.item()
        except NoValidAnchorsError:
            print("no valid anchors: batch skipped")
        dist.all_gather_object(metrics, {"step": step, "loss": loss})  # culprit


main()
