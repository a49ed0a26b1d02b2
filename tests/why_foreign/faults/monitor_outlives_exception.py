"""A thread that is no daemon keeps a process at its exit, after an exception in the training.

https://github.com/lincc-frameworks/hyrax/pull/1011: a monitor is stopped only after a training that
succeeds; any exception leaves its thread, for which the interpreter waits forever at shutdown.
"""

from __future__ import annotations

import threading

import torch
import torch.distributed as dist


class Monitor(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="monitor")
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.wait(5):  # culprit: thread
            pass  # reads how much memory is used


def train(step: int) -> None:
    loss = torch.ones(4)
    if dist.get_rank() == 2 and step == 2:
        loss = loss.reshape(3, 2)
    dist.all_reduce(loss)


def main() -> None:
    dist.init_process_group("gloo")
    monitor = Monitor()
    monitor.start()
    for step in range(4):
        train(step)
    monitor.stopped.set()
    monitor.join()


main()
