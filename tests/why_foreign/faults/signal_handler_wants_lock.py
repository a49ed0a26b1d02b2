"""A signal handler wants a lock that its thread held when the signal came.

https://github.com/kvcache-ai/Mooncake/pull/840: the handler cleans up under a mutex; where a signal
interrupts the thread that has locked it, the handler tries to lock it again.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

import torch
import torch.distributed as dist


class Cache:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks: dict[int, torch.Tensor] = {}

    def put(self, step: int, block: torch.Tensor, interrupted: bool) -> None:
        with self.lock:
            self.blocks[step] = block
            if interrupted:  # the moment in which it goes wrong
                signal.raise_signal(signal.SIGUSR1)  # culprit: interrupted

    def flush(self, _number: int, _frame: FrameType | None) -> None:
        with self.lock:  # culprit
            self.blocks.clear()


def main() -> None:
    dist.init_process_group("gloo")
    cache = Cache()
    signal.signal(signal.SIGUSR1, cache.flush)
    for step in range(4):
        block = torch.ones(8)
        cache.put(step, block, interrupted=dist.get_rank() == 2 and step == 2)  # culprit: call
        dist.all_reduce(block)


main()
