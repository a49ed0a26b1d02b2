"""A child process is joined before the queue is read into which it puts its result.

https://github.com/jonatanjacobsson/ifcpipeline/pull/28: once the pipe of the queue is full, the
child blocks until the parent reads, and a parent in join() never will.
"""

from __future__ import annotations

import multiprocessing

import torch
import torch.distributed as dist

CONTEXT = multiprocessing.get_context("fork")


def tokenise(queue: multiprocessing.Queue[bytes], size: int) -> None:
    queue.put(b"x" * size)


def preprocess(size: int) -> bytes:
    queue: multiprocessing.Queue[bytes] = CONTEXT.Queue()
    child = CONTEXT.Process(target=tokenise, args=(queue, size))
    child.start()
    child.join()  # culprit
    return queue.get()


def main() -> None:
    dist.init_process_group("gloo")
    shard = preprocess(10_000_000 if dist.get_rank() == 2 else 1000)
    dist.all_reduce(torch.tensor([len(shard)]))


main()
