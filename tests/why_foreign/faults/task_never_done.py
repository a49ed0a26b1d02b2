"""A coroutine waits until all tasks of a queue are done, and one was never marked so.

https://github.com/pyrogram/pyrogram/pull/1305: the queue's join() never returns, since get() does
not count down what put() has counted; task_done() was not called.
"""

from __future__ import annotations

import asyncio

import torch
import torch.distributed as dist


async def upload(queue: asyncio.Queue[int]) -> None:
    while True:
        size = await queue.get()
        if size == 0:
            continue
        await asyncio.sleep(0)
        queue.task_done()


async def publish(sizes: list[int]) -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    uploads = asyncio.create_task(upload(queue))
    for size in sizes:
        queue.put_nowait(size)
    await queue.join()  # culprit
    uploads.cancel()


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(3):
        empty = dist.get_rank() == 2 and step == 1
        asyncio.run(publish([4, 0, 4] if empty else [4, 4, 4]))  # culprit: call
        dist.all_reduce(torch.ones(2))


main()
