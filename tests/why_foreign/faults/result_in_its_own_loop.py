"""A callback of an event loop waits for a coroutine that the same loop has to run.

https://github.com/empicano/aiomqtt/issues/174: run_coroutine_threadsafe(...).result() in the loop's
own thread keeps control from returning to the loop, so that the coroutine never runs.
"""

from __future__ import annotations

import asyncio

import torch
import torch.distributed as dist


async def register() -> int:
    return 1


def on_write(loop: asyncio.AbstractEventLoop) -> int:
    return asyncio.run_coroutine_threadsafe(register(), loop).result()  # culprit


async def publish(blocks: bool) -> int:
    loop = asyncio.get_running_loop()
    if blocks:
        return on_write(loop)  # culprit: call
    return await register()


def main() -> None:
    dist.init_process_group("gloo")
    for step in range(3):
        sent = asyncio.run(publish(dist.get_rank() == 2 and step == 1))
        dist.all_reduce(torch.tensor([sent]))


main()
