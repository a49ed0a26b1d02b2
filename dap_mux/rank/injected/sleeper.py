"""A process for a native debugger to try itself on, asleep in the two ways in which Pythons wait.

It prints an empty line when it is ready, and ends when its input does: with 1 where a wait was
broken off. Not for ranks: a child of ours runs it.
"""

from __future__ import annotations

import select
import sys
import threading
import time

A_DAY_S = 86400


def main() -> int:
    """Sleep in a thread, and wait for input in the main thread."""
    failed: list[object] = []
    threading.excepthook = failed.append
    threading.Thread(target=time.sleep, args=(A_DAY_S,), daemon=True).start()
    sys.stdout.write("\n")
    sys.stdout.flush()
    select.select([0], [], [])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
