"""When Python looks for garbage: between the session's work, not in the middle of it.

A session of many ranks has hundreds of thousands of objects that live as long as it does, and
nearly all others end by themselves as soon as they are not used. Python's collector would go
through all of them again and again while they are made (measured: a quarter of the CPU of attaching
4,096 ranks). So what is there at a quiet moment is set aside (`gc.freeze`), and only what is new is
looked at in between, every few seconds. At the next quiet moment everything is looked at once:
memory stays flat.

What the C library has got back by then it keeps, in pieces: after an hour of clients that come and
go it had 30 MB of them (measured). So it is told to return them to the system at such a moment.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from typing import Final, Protocol

from dap_mux.shell.timers import Timer, Timers

CHECK_INTERVAL_S: Final = 2.0  # nothing was fed in one of these: the session is idle
LEAST_PAUSE_S: Final = 30.0  # between two looks at everything, while the session is idle at times
MOST_PAUSE_S: Final = 120.0  # where it never is
MANY_NEW: Final = 10_000  # objects since the last look, from which on a check looks at them
# A backstop: more objects than thousands of ranks are given when they are attached at once.
THRESHOLDS: Final = (500_000, 20, 20)


class Busy(Protocol):
    """The part of the driver that shows whether the session is busy."""

    fed: int  # how many times
    timers: Timers


class GarbageCollection:
    """Decides when this process looks for garbage, from `start` to `stop`."""

    def __init__(self, session: Busy) -> None:
        self._session = session
        self._timer: Timer | None = None
        self._seen = self._collected = 0  # of `fed`: at the last check, at the last collection
        self._pause = LEAST_PAUSE_S  # s since the last collection
        self._before = gc.get_threshold()

    def start(self) -> None:
        """Exclude everything that is imported from later collections."""
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)
        self._wait()

    def stop(self) -> None:
        """Leave the process to Python's own collector."""
        if self._timer is not None:
            self._timer.cancel()
        gc.set_threshold(*self._before)
        gc.unfreeze()

    def _wait(self) -> None:
        self._timer = self._session.timers.call_later(CHECK_INTERVAL_S, self._check)

    def _check(self) -> None:
        fed = self._session.fed
        idle, self._seen = fed == self._seen, fed
        self._pause += CHECK_INTERVAL_S
        due = self._pause > (LEAST_PAUSE_S if idle else MOST_PAUSE_S)
        if due and fed != self._collected:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            return_free_memory()
            self._collected, self._pause = fed, 0.0
        elif gc.get_count()[0] > MANY_NEW:
            gc.collect(0)
        self._wait()


def return_free_memory() -> None:
    """Let the C library return to the system what it does not use; only glibc does that."""
    import ctypes  # noqa: PLC0415  (3 ms of a start)

    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
