"""The thread that prefetches batches has died, and the main thread waits for the next one.

https://github.com/RadarML/red-rover/issues/23: if the iterator of a prefetch raises an exception,
the thread dies without ever notifying the consumer.
"""

from __future__ import annotations

import queue
import threading

import torch
import torch.distributed as dist


def prefetch(batches: queue.Queue[torch.Tensor], rank: int) -> None:
    for step in range(100):
        if rank == 2 and step == 5:
            raise ValueError(f"truncated record {step}")
        batches.put(torch.full((8,), float(step)))


def main() -> None:
    dist.init_process_group("gloo")
    batches: queue.Queue[torch.Tensor] = queue.Queue(maxsize=2)
    threading.Thread(target=prefetch, args=(batches, dist.get_rank()), daemon=True).start()
    for _ in range(100):
        batch = batches.get()  # culprit
        dist.all_reduce(batch)


main()
