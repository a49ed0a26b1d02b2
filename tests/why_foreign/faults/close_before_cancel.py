"""A prefetcher joins its thread before it closes the source for which the thread waits.

https://github.com/google/grain/issues/1372: close() joins the producer; blocked in its parent's
__next__(), it does not see the stop event, and the parent is closed only after the join.
"""

from __future__ import annotations

import threading

import torch.distributed as dist


class Source:
    def __init__(self, more_to_come: bool) -> None:
        self.left, self.more_to_come = 4, more_to_come
        self.closed = threading.Event()

    def __next__(self) -> int:
        self.left -= 1
        if self.left < 0 and self.more_to_come:
            self.closed.wait()  # culprit: producer
        return self.left


class Prefetch:
    def __init__(self, source: Source) -> None:
        self.source, self.stopped = source, threading.Event()
        self.thread = threading.Thread(target=self.produce, daemon=True)
        self.thread.start()

    def produce(self) -> None:
        while not self.stopped.is_set() and next(self.source) >= 0:
            pass

    def close(self) -> None:
        self.stopped.set()
        self.thread.join()  # culprit
        self.source.closed.set()


dist.init_process_group("gloo")
batches = Prefetch(Source(more_to_come=dist.get_rank() == 2))
batches.close()  # culprit: call
dist.barrier()
