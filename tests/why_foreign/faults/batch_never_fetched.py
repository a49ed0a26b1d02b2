"""A barrier before each step, which a rank does not reach because its batch does not come.

https://github.com/dylanyunlon/Neuron_SP/issues/73: rank 0 waits in a barrier in the step, and
others never get there: they are stuck in fetching their data.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist


def read(batches: queue.Queue[torch.Tensor], stalls: bool) -> None:
    for number in range(100):
        if stalls and number == 5:
            time.sleep(3600)  # a store that does not answer
        batches.put(torch.full((4,), float(number)))


def prefetched(stalls: bool) -> Iterator[torch.Tensor]:
    batches: queue.Queue[torch.Tensor] = queue.Queue(2)
    threading.Thread(target=read, args=(batches, stalls), daemon=True).start()
    while True:
        yield batches.get()  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    data = prefetched(dist.get_rank() == 2)
    for _ in range(10):
        batch = next(data)  # culprit: next
        dist.barrier()
        dist.all_reduce(batch)


main()
