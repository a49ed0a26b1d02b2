"""Files and paths that a user names, or that a project brings: read without being surprised.

Only regular files are read: a FIFO keeps its reader waiting, and a device may never end. Text that
is nested more deeply than a parser can follow is malformed, like anything else that it refuses.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO, Final

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class NoHome(ValueError):
    """`~` or `~user` names no folder."""


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; never waits. Raises OSError, which says what it is else."""
    check_regular(path, path.stat())  # opening a device may have an effect
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _NO_WAIT)
    try:
        check_regular(path, os.fstat(handle))  # it may be another one by now
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def check_regular(path: Path, status: os.stat_result) -> None:
    """Raise OSError unless this is a regular file."""
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))


def read_regular(path: Path) -> str:
    """Return the text of a regular file. Raises OSError, UnicodeDecodeError."""
    with open_regular(path) as file:
        return file.read().decode("utf-8")


def parse_json(text: str) -> Any:
    """Parse JSON. Raises ValueError, also where it is nested too deeply."""
    import json  # noqa: PLC0415  (it takes 2 ms, and an adapter that starts has nothing to parse)

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def expand_home(path: str) -> Path:
    """Put in the home of `~` and `~user`. Raises NoHome where there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise NoHome(f"{Path(path).parts[0]} is not the home folder of a user here") from None
