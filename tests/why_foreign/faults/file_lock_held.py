"""A rank holds a file lock while its download stalls; all others wait for the lock.

https://github.com/huggingface/datasets/issues/1672: load_dataset hangs on the lock of the file.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
import time
from pathlib import Path

RANK = int(os.environ["RANK"])
LOCK = Path(tempfile.gettempdir(), f"dataset-{os.environ['MASTER_PORT']}.lock")
TAKEN = LOCK.with_suffix(".taken")


def download() -> bytes:
    """Read from a server that has gone silent."""
    server, client = socket.socketpair()
    with server, client:
        return client.recv(1 << 20)  # culprit


def load_dataset() -> None:
    with LOCK.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if RANK == 2:
            TAKEN.touch()
            download()  # culprit: in the lock


def main() -> None:
    while RANK != 2 and not TAKEN.exists():  # rank 2 is the first
        time.sleep(0.1)
    load_dataset()
    print("loaded")


main()
