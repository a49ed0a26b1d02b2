"""Two threads of a rank take two locks in opposite orders.

https://github.com/h5py/h5py/issues/859: one thread has the import lock and wants that of h5py,
another has that of h5py and wants the import lock; Dask workers froze.
"""

from __future__ import annotations

import threading

import torch
import torch.distributed as dist

FILES, INDEX = threading.Lock(), threading.Lock()


def read(meeting: threading.Barrier) -> None:
    with FILES:
        meeting.wait()
        with INDEX:  # culprit
            print("read")


def reindex(meeting: threading.Barrier) -> None:
    with INDEX:
        meeting.wait()
        with FILES:  # culprit: the other thread
            print("indexed")


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(4):
        if dist.get_rank() == 2 and step == 2:
            meeting = threading.Barrier(2)  # the moment in which it goes wrong
            threading.Thread(target=reindex, args=(meeting,)).start()
            read(meeting)
        dist.all_reduce(torch.ones(2))


main()
