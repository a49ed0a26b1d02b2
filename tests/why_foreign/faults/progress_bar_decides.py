"""Only one rank's progress bar counts, and evaluation starts where the bar says so.

https://github.com/huggingface/transformers/issues/31532: the bar was enabled on one process, so
that this one alone entered evaluation, whose gathering waited for the other processes forever.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Bar:
    """A progress bar; one that is disabled counts nothing."""

    def __init__(self, *, disable: bool) -> None:
        self.disable = disable
        self.n = 0

    def update(self) -> None:
        self.n += not self.disable


def evaluate() -> None:
    predictions = torch.zeros(8)
    gathered = [torch.empty(8) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, predictions)  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(8, 8))
    bar = Bar(disable=dist.get_rank() != 2)
    for _ in range(20):
        model(torch.randn(2, 8)).sum().backward()
        bar.update()
        if bar.n == 5:
            evaluate()


main()
