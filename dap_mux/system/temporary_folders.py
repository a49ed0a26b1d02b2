"""Temporary folders of a run: none stays behind empty, nor for good after a run that was killed."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from dap_mux.system import procfs

LOGS: Final = "dap-mux-logs-"
RANKS: Final = "dap-mux-ranks-"
LONG_GONE: Final = 24 * 3600.0  # s without a change
_RUNNING: Final = ".running"


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder for a run. At its end it goes if there is nothing in it, and stays otherwise.

    What killed runs have left is removed before.
    """
    _remove_left_behind(prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    with (folder / _RUNNING).open("wb") as mark:
        hold(mark)
        try:
            yield folder
        finally:
            (folder / _RUNNING).unlink(missing_ok=True)
            _remove_empty(folder)


# A folder holds a file that its session has locked while it lives. Where that is still there,
# unlocked, the session was killed; its folder goes at a later start, once nothing has changed in it
# for a day and none of its files is locked by a rank that writes its log there.
@contextmanager
def log_folder(chosen: Path | None) -> Iterator[Path]:
    """Give the folder for a run's logs: the user's own, or a temporary one."""
    if chosen is not None:
        yield chosen
        return
    with temporary_folder(LOGS) as folder:
        yield folder


def hold(file: IO[bytes]) -> None:
    """Lock an open file, for as long as it is open here or in a child."""
    if sys.platform != "win32":
        import fcntl  # noqa: PLC0415  (Windows has none)

        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _is_held(path: Path) -> bool:
    """Whether a living process has locked this file; also where that cannot be known."""
    if sys.platform == "win32":
        return True
    import fcntl  # noqa: PLC0415  (Windows has none)

    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        files = [*folder.iterdir()]
        if all(stat.S_ISREG(file.lstat().st_mode) and not file.lstat().st_size for file in files):
            for file in files:
                file.unlink()
            folder.rmdir()


def _remove_left_behind(prefix: str) -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            if _is_left_behind(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left_behind(folder: Path) -> bool:
    status, since = folder.lstat(), time.time() - LONG_GONE
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    # Every start looks at all folders, and there may be thousands of logs in each: one that was
    # left in order, or of late, is not listed.
    if status.st_mtime > since or not os.path.lexists(folder / _RUNNING):
        return False
    files = [*folder.iterdir()]
    return all(file.lstat().st_mtime < since for file in files) and not any(
        _is_held(file) or _is_alive(file) for file in files
    )


def _is_alive(file: Path) -> bool:
    """Whether the file is the record of a rank (HOST-PID.json) that may still be there."""
    pid = file.stem.rpartition("-")[2]
    if file.suffix != ".json" or not pid.isdecimal():
        return False
    return procfs.folder(pid).exists()
