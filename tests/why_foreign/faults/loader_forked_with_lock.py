"""A worker of the data loader was forked while another thread held a lock that it needs.

https://github.com/pytorch/pytorch/issues/130610: a thread of the process holds a lock when the next
loader forks its workers; in a worker nobody is left to release it.
"""

from __future__ import annotations

import os
import threading

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

CACHE = threading.Lock()
HELD, FORKED = threading.Event(), threading.Event()  # the moment in which it goes wrong


def refresh() -> None:
    with CACHE:
        HELD.set()
        FORKED.wait()


class Cached(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> torch.Tensor:
        with CACHE:  # culprit: worker
            return torch.full((4,), float(index))


def main() -> None:
    dist.init_process_group("gloo")
    if dist.get_rank() == 2:
        os.register_at_fork(after_in_parent=FORKED.set)
        threading.Thread(target=refresh).start()
        HELD.wait()
    for batch in DataLoader(Cached(), num_workers=1, multiprocessing_context="fork"):  # culprit
        dist.all_reduce(batch)


main()
