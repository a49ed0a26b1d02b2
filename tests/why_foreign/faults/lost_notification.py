"""A thread waits for a condition that was notified before it waited.

https://github.com/pytorch/pytorch/pull/1140: notify_all() was executed while the main thread was
not sleeping yet; once it went to sleep it was never woken up again.
"""

from __future__ import annotations

import threading

import torch
import torch.distributed as dist


class Copy:
    """A copy to the host, made by a thread."""

    def __init__(self) -> None:
        self.changed = threading.Condition()

    def run(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def wait(self) -> None:
        with self.changed:
            self.changed.wait()  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(4):
        copy = Copy()
        thread = threading.Thread(target=copy.run)
        thread.start()
        thread.join()
        if dist.get_rank() == 2 and step == 3:  # the others do not look whether it is done
            copy.wait()  # culprit: call
        dist.all_reduce(torch.ones(2))


main()
