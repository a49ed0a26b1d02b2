"""An exception on one rank is caught by a harness, which then waits; the others are in a barrier.

https://github.com/firedrakeproject/mpi-pytest/issues/12: one process raised an exception and the
others hung at a barrier; the exception is not shown, because what runs the test catches it.
"""

from __future__ import annotations

import logging
import threading

import torch
import torch.distributed as dist

LOG = logging.getLogger("harness")
SHUTDOWN = threading.Event()


def step(number: int) -> None:
    if dist.get_rank() == 2 and number == 3:
        raise ValueError("volume fraction too high")  # culprit: raised
    dist.all_reduce(torch.ones(4))


def run() -> None:
    try:
        for number in range(6):
            step(number)
    except ValueError as error:
        LOG.debug("failed: %s", error)


def main() -> None:
    dist.init_process_group("gloo")
    run()
    SHUTDOWN.wait()  # culprit


main()
