"""Actors of Ray whose methods run side by side, and a task that starts processes."""

import asyncio
import importlib
import multiprocessing
import subprocess
import sys
from typing import Any

import ray


class Threaded:
    def share(self, number: int) -> int:
        sevens = importlib.import_module("sevens")  # from the working_dir
        part = int(sevens.times(number))
        self.last = part  # threaded
        return part


class Async:
    async def share(self, number: int) -> int:
        await asyncio.sleep(0)
        part = number * 9
        self.last = part  # async
        return part


def split(number: int) -> tuple[int, int]:
    fork = multiprocessing.get_context("fork")
    parts: Any = fork.SimpleQueue()
    child = fork.Process(target=add, args=(parts, number))
    child.start()
    child.join()
    words = [sys.executable, "-c", f"print({number} * 3)"]
    printed = subprocess.run(words, capture_output=True, check=True).stdout
    breakpoint()  # noqa: T100
    return parts.get(), int(printed)


def add(parts: Any, number: int) -> None:
    total = number + 1
    parts.put(total)  # forked


threaded: Any = ray.remote(num_cpus=0, max_concurrency=2)(Threaded)
asynchronous: Any = ray.remote(num_cpus=0)(Async)
task: Any = ray.remote(num_cpus=0)(split)
ray.init(
    num_cpus=1,
    object_store_memory=80_000_000,
    include_dashboard=False,
    runtime_env={"working_dir": sys.argv[1]},
)
actors = [threaded.remote(), asynchronous.remote()]
shares = [each.share.remote(number) for each in actors for number in (1, 2)]
parts = task.remote(5)
print("shares", *ray.get(shares), "split", *ray.get(parts))
