"""Keep the last part of what a job prints: `python -I job_log.py FILE` beside it, on its pipe."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import BinaryIO, Final

KEPT: Final = 1 << 20
"""Bytes that are kept at least; a file has twice as many at most."""
CHUNK: Final = 1 << 16


def keep(pipe: int, file: BinaryIO) -> None:
    """Write what comes to the file, until its writers have ended."""
    while data := os.read(pipe, CHUNK):
        with suppress(OSError):  # no space left: the job must not wait for it
            if file.tell() + len(data) > 2 * KEPT:
                _drop_first(file)
            file.write(data)


def _drop_first(file: BinaryIO) -> None:
    file.seek(-KEPT, os.SEEK_END)
    last = file.read()
    file.seek(0)
    file.write(last)
    file.truncate()


if __name__ == "__main__":
    with open(sys.argv[1], "r+b", buffering=0) as log:  # noqa: PTH123
        keep(sys.stdin.fileno(), log)
