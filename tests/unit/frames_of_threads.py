"""Run by `test_frames_of_threads`: look at the frames of a busy thread again and again.

The first argument is how: `plain`, or `ours`. The second is for how many seconds. Exit code 1, or
death by a signal: something was no frame. `plain` ends so on CPython 3.11 alone, after 0 to 15 s of
a quiet processor each; that is chance, so no test waits for it.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any

from dap_mux.injected.tracing import _no_collection

SIZES = 60  # of functions' frames


class Garbage:
    """A cycle whose end lets other threads run."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.sleep(0.0001)


def functions() -> list[Callable[[int], int]]:
    """Functions that call one another, with frames of many sizes."""
    every: list[Callable[[int], int]] = []
    found: dict[str, Any] = {"every": every}
    for size in range(1, SIZES):
        text = "def function(n):\n"
        text += "".join(f"    a{each} = n\n" for each in range(size))
        text += f"    return every[(7 * n + {size}) % len(every)](n - 1) if n else 0\n"
        exec(text, found)
        every.append(found["function"])
    return every


def work() -> None:
    """Call and return, without end."""
    every, times = functions(), 0
    while True:
        times += 1
        every[times % len(every)](times % 40)


def main(manner: str, seconds: str) -> int:
    """Return the exit code."""
    undisturbed: Callable[[], AbstractContextManager[None]]
    undisturbed = _no_collection if manner == "ours" else nullcontext
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    sys.setswitchinterval(1e-5)
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        gc.set_threshold(100_000)
        Garbage()
        gc.set_threshold(gc.get_count()[0] + random.randrange(1, 8))
        with undisturbed():
            frame = sys._current_frames().get(worker.ident or 0)
            while frame is not None:
                if not isinstance(frame, FrameType):
                    return 1
                frame = frame.f_back
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
