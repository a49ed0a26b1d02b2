"""A rank sends something for which the other side has no receive.

https://github.com/pytorch/pytorch/pull/11275: a send may block until there is a receive on the
other side, so that every rank that sends without one deadlocks.
"""

from __future__ import annotations

import torch
import torch.distributed as dist


def report(statistics: torch.Tensor) -> None:
    """Tell rank 0 about an outlier."""
    if statistics.max() > 10:
        dist.send(statistics, dst=0)  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(6):
        statistics = torch.ones(1024)
        if dist.get_rank() == 2 and step == 4:
            statistics *= 100
        report(statistics)
        dist.all_reduce(statistics)


main()
