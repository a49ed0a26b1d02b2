"""The thread that writes summaries has died of an exception, and its queue is full.

https://github.com/tensorflow/tensorboard/issues/6167: EventFileWriter can hang on an exception in
its background thread.
"""

from __future__ import annotations

import errno
import queue
import threading

import torch
import torch.distributed as dist


class SummaryWriter:
    def __init__(self, space: int) -> None:
        self.space = space
        self.events: queue.Queue[float] = queue.Queue(10)
        threading.Thread(target=self.run, name="summaries", daemon=True).start()

    def run(self) -> None:
        while True:
            self.events.get()
            self.space -= 1
            if self.space < 0:
                raise OSError(errno.ENOSPC, "no space left on device")

    def add_scalar(self, value: float) -> None:
        self.events.put(value)  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    writer = SummaryWriter(space=3 if dist.get_rank() == 2 else 1000)
    for step in range(40):
        loss = torch.tensor([1.0 / (step + 1)])
        dist.all_reduce(loss)
        writer.add_scalar(loss.item())  # culprit: call


main()
