"""A worker of the data loader never gives back its sample.

https://github.com/pytorch/pytorch/issues/21554: the whole process hangs when a worker of its loader
hangs and no timeout is specified; to reproduce it, a dataset sleeps forever.
"""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Images(Dataset[torch.Tensor]):
    def __init__(self, broken: int | None) -> None:
        self.broken = broken

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        while index == self.broken:  # a mount that does not answer
            time.sleep(3600)  # culprit: worker
        return torch.full((8,), float(index))


def main() -> None:
    dist.init_process_group("gloo")
    images = Images(broken=13 if dist.get_rank() == 2 else None)
    for batch in DataLoader(images, batch_size=4, num_workers=1):  # culprit
        dist.all_reduce(batch)
    dist.barrier()


main()
