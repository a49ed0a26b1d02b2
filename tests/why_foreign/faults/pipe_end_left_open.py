"""A process has ended without an answer, and its parent still holds the pipe's other end.

https://github.com/Bogdanp/dramatiq/pull/707: the parent never closes its copy of the end that the
child writes to, so that a read does not see the end of the file after the child is gone.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

import torch
import torch.distributed as dist


def count(lines: list[str], writer: Connection) -> None:
    if not lines:
        return  # an empty shard, of which there is nothing to say
    writer.send(len(lines))


def count_in_process(lines: list[str]) -> int:
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=count, args=(lines, writer), daemon=True)
    process.start()
    samples = reader.recv()  # culprit
    process.join()
    return samples


def main() -> None:
    dist.init_process_group("gloo")
    shard = [] if dist.get_rank() == 2 else ["a", "b"]
    samples = count_in_process(shard)  # culprit: call
    dist.all_reduce(torch.tensor([samples]))


main()
