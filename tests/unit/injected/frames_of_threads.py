"""Run by `test_frames_of_threads`: look at the frames of a busy thread again and again.

The first argument is how: `plain`, or `ours`; or `debugpy`, as it does when breakpoints are set, or
`patched`, the same with our patch. The second is for how many seconds. Exit code 1, or death by a
signal: something was no frame. `plain` and `debugpy` end so on CPython 3.11 alone, after 0 to 15 s
of a quiet processor each; that is chance, so no test waits for it.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from types import FrameType
from typing import Any

from dap_mux.rank.injected.attach.tracing import _no_collection, look_at_threads_undisturbed

SIZES = 60  # of functions' frames
DEBUGPYS = ("debugpy", "patched")


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
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    look = debugpys_look(manner) if manner in DEBUGPYS else own_look(manner, worker)
    reach = 30 if manner in DEBUGPYS else 8  # of objects until a collection
    sys.setswitchinterval(1e-5)
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        gc.set_threshold(100_000)
        Garbage()
        gc.set_threshold(gc.get_count()[0] + random.randrange(1, reach))
        if not look():
            return 1
    return 0


def own_look(manner: str, worker: threading.Thread) -> Callable[[], bool]:
    """Return what looks at the frames itself, and says whether all are frames."""
    undisturbed = _no_collection if manner == "ours" else nullcontext

    def look() -> bool:
        with undisturbed():
            frame = sys._current_frames().get(worker.ident or 0)
            while frame is not None:
                if not isinstance(frame, FrameType):
                    return False
                frame = frame.f_back
        return True

    return look


def debugpys_look(manner: str) -> Callable[[], bool]:
    """Return what has debugpy look at them; it takes all for frames."""
    import_module("debugpy.server.api")  # which finds the others
    debugger = import_module("pydevd").PyDB(set_as_global=True)
    if manner == "patched":
        look_at_threads_undisturbed(debugger)

    def look() -> bool:
        debugger.set_tracing_for_untraced_contexts()
        return True

    return look


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
