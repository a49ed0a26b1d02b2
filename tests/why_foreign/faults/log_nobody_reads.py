"""A training writes its log to a pipe, whose reader has gone away and left it open.

https://github.com/MakazhanAlpamys/Soup/issues/688: the output is drained only while a client is
subscribed; once the pipe is full, the training blocks on its next write.
"""

from __future__ import annotations

import os
import threading

import torch
import torch.distributed as dist


class Viewer:
    """Shows the log of a training to those who look at it."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.output, self.log = os.pipe()
        threading.Thread(target=self.show, daemon=True).start()

    def show(self) -> None:
        for _ in range(self.looks):
            os.read(self.output, 65536)


def report(log: int, step: int) -> None:
    os.write(log, f"step {step}\n".encode() * 1000)  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    viewer = Viewer(looks=3 if dist.get_rank() == 2 else 1000)
    for step in range(60):
        dist.all_reduce(torch.ones(4))
        report(viewer.log, step)  # culprit: call


main()
