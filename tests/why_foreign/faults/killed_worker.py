"""A worker is killed, and the others go on waiting for its flag in shared memory.

https://github.com/vllm-project/vllm/pull/45644: if a worker dies before it sets its flag in shared
memory, whoever waits for that flag blocks forever.
"""

from __future__ import annotations

import mmap
import os
import signal
import tempfile
import time
from pathlib import Path

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
FLAGS = Path(tempfile.gettempdir(), f"flags-{os.environ['MASTER_PORT']}")


def wait_for_all(flags: mmap.mmap, step: int) -> None:
    while min(flags[:SIZE]) < step:
        time.sleep(0.01)


def main() -> None:
    with FLAGS.open("ab") as file:
        file.truncate(SIZE)
    with FLAGS.open("r+b") as file:
        flags = mmap.mmap(file.fileno(), SIZE)
    for step in range(1, 100):
        if RANK == 2 and step == 50:
            os.kill(os.getpid(), signal.SIGKILL)  # culprit
        flags[RANK] = step
        wait_for_all(flags, step)


main()
