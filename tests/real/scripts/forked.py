"""Many small ranks: forked from one process, so that they share its memory, adapters inside.

`forked.py FIRST_PORT COUNT` prints the list of their pids once all of them listen.
"""

# ruff: noqa: T100  (debugpy is what it is about)

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time

import debugpy


def train(step: int) -> int:
    loss = step + 1  # loss
    return loss  # noqa: RET504  (a line to stop at)


def work(rank: int, port: int, ready: int) -> None:
    globals()["rank"] = rank
    debugpy.listen(("127.0.0.1", port), in_process_debug_adapter=True)
    os.write(ready, b".")
    debugpy.wait_for_client()
    while True:
        train(rank // 60)
        time.sleep(0.01)


def main(first: int, count: int) -> None:
    reading, ready = os.pipe()
    importlib.import_module("debugpy.server.api")  # what would be every rank's own after the fork
    gc.freeze()
    pids = []
    for rank in range(count):
        pid = os.fork()
        if pid == 0:
            work(rank, first + rank, ready)
        pids.append(pid)
    told = 0
    while told < count:
        told += len(os.read(reading, count))
    print(json.dumps(pids), flush=True)
    for pid in pids:
        os.waitpid(pid, 0)


main(int(sys.argv[1]), int(sys.argv[2]))
