"""Blocks in C in the way named first, again and again until the file named second exists.

Each call lasts until it is interrupted (SIGINT). Once it has begun the file named third is there.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
import time
from pathlib import Path

LONG = 600  # s
kind, done, blocked = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
begun = threading.Lock()
begun.acquire()


def announce() -> None:
    """Wait for the GIL, which the call in C gives away and nothing that comes before it."""
    while True:
        begun.acquire()
        os.close(os.open(blocked, os.O_CREAT))


# On one line: a debugger's work between two would give the GIL away.
def sleeping() -> None:
    begun.release(); time.sleep(LONG)  # noqa: E702  # fmt: skip


def selecting() -> None:
    begun.release(); select.select([], [], [], LONG)  # noqa: E702  # fmt: skip


def locked() -> None:
    """A lock that is not free, as a queue or a collective would have it."""
    lock = threading.Lock()
    lock.acquire()
    begun.release(); lock.acquire(timeout=LONG)  # noqa: E702  # fmt: skip


sys.setswitchinterval(LONG)  # who computes keeps the GIL
announcer = threading.Thread(target=announce, daemon=True)
announcer.pydev_do_not_trace = True  # type: ignore[attr-defined]  # no pause stops it
announcer.start()
block = {"sleep": sleeping, "select": selecting, "lock": locked}[kind]
while not done.exists():
    with contextlib.suppress(KeyboardInterrupt):
        block()
print("freed")
