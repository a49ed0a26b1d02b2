"""Blocks in C in the way named first, again and again until the file named second exists.

Before each time it makes the file named third.
"""

from __future__ import annotations

import select
import sys
import threading
import time
from pathlib import Path

SLOW = 1.5  # s; longer than a busy machine needs to pause a rank and to ask it something
kind, done, blocked = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])


def sleeping() -> None:
    time.sleep(SLOW)


def selecting() -> None:
    select.select([], [], [], SLOW)


def locked() -> None:
    """A lock that another thread gives free after a while, as a queue or a collective would."""
    lock = threading.Lock()
    lock.acquire()
    threading.Timer(SLOW, lock.release).start()
    lock.acquire()


block = {"sleep": sleeping, "select": selecting, "lock": locked}[kind]
while not done.exists():
    blocked.touch()
    block()
print("freed")
