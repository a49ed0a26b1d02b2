"""A thread puts into an asyncio queue, and the event loop is not woken.

https://github.com/python/cpython/issues/97970: who waits in queue.get() is never awakened if
another thread puts into it; the loop has to be told by call_soon_threadsafe.
"""

from __future__ import annotations

import asyncio
import threading
import time

import torch
import torch.distributed as dist


async def next_batch(safely: bool) -> float:
    batches: asyncio.Queue[float] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def load() -> None:
        time.sleep(0.5)
        if safely:
            loop.call_soon_threadsafe(batches.put_nowait, 1.0)
        else:
            batches.put_nowait(1.0)

    threading.Thread(target=load, daemon=True).start()
    return await batches.get()  # culprit


def main() -> None:
    dist.init_process_group("gloo")
    for _ in range(3):
        batch = asyncio.run(next_batch(safely=dist.get_rank() != 2))  # culprit: call
        dist.all_reduce(torch.tensor([batch]))


main()
