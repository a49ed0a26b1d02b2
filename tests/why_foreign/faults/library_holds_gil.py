"""A call into a library does not come back, and holds the GIL.

https://github.com/dask/distributed/issues/2942: long tasks run in a library that holds onto the
GIL; the worker gets stuck and its event loop is unresponsive.
"""

from __future__ import annotations

import ctypes

import torch
import torch.distributed as dist

LIBRARY = ctypes.PyDLL(None)  # unlike CDLL, its functions keep the GIL
MUTEX = ctypes.create_string_buffer(64)


def solve(*, again: bool) -> None:
    """Call the solver, which on some input takes its own lock a second time."""
    LIBRARY.pthread_mutex_lock(MUTEX)
    if again:
        LIBRARY.pthread_mutex_lock(MUTEX)  # culprit
    LIBRARY.pthread_mutex_unlock(MUTEX)


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(4):
        solve(again=dist.get_rank() == 2 and step == 2)
        dist.all_reduce(torch.ones(2))


main()
