"""Holds one thread of a process while its others run on, which SIGSTOP cannot."""

from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress
from typing import Final

_SEIZE: Final = 0x4206  # <sys/ptrace.h>
_INTERRUPT: Final = 0x4207
_DETACH: Final = 17
_WALL: Final = 0x40000000  # <sys/wait.h>: threads, too
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_LIBC.ptrace.restype = ctypes.c_long


def hold(tid: int, seconds: float) -> None:
    """Stop this thread for so long; nothing, where it is gone or somebody else traces it.

    What it waits for is not interrupted, and signals reach it afterwards.
    """
    with suppress(ProcessLookupError, PermissionError, ChildProcessError):
        _ptrace(_SEIZE, tid)
        _ptrace(_INTERRUPT, tid)
        _, status = os.waitpid(tid, _WALL)
        if not os.WIFSTOPPED(status):
            return  # it has just ended
        time.sleep(seconds)
        # A stop for a signal that came first has its number; ours is SIGTRAP with an event.
        try:
            _ptrace(_DETACH, tid, 0 if status >> 16 else os.WSTOPSIG(status))
        except ProcessLookupError:  # killed meanwhile: its parent learns of it once we have
            os.waitpid(tid, _WALL)


def _ptrace(request: int, tid: int, data: int = 0) -> None:
    if _LIBC.ptrace(request, tid, None, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
