"""A child process was killed while it held a lock that its parent wants.

https://github.com/python/cpython/issues/88304: the documentation of multiprocessing should say what
happens when a process dies that holds a Lock; nobody releases it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal

import torch
import torch.distributed as dist

CONTEXT = multiprocessing.get_context("fork")
INDEX = CONTEXT.Lock()


def convert(too_large: bool) -> None:
    with INDEX:
        if too_large:  # and the kernel takes it for a victim
            os.kill(os.getpid(), signal.SIGKILL)


def prepare(too_large: bool) -> int:
    child = CONTEXT.Process(target=convert, args=(too_large,))
    child.start()
    child.join()
    with INDEX:  # culprit
        return 1


def main() -> None:
    dist.init_process_group("gloo")
    shards = prepare(too_large=dist.get_rank() == 2)
    dist.all_reduce(torch.tensor([shards]))


main()
