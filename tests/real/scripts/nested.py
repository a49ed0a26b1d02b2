"""A rank whose child starts a child; the code of the innermost comes back to 0."""

from __future__ import annotations

import os
import sys


def fork(depth: int) -> int:
    """Return the exit code of the innermost."""
    if depth == 0:
        return 7  # innermost
    pid = os.fork()
    if pid == 0:
        os._exit(fork(depth - 1))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(0 if fork(2) == 7 else 1)
