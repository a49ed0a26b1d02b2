"""Many deadlines behind one timer of the event loop, and when Python looks for garbage.

Each rank has several deadlines at a time, and nearly all are cancelled: a timer of the loop's for
each costs ten times as much memory, and twice the time, of an entry in a heap.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import suppress
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final, Protocol

_TICK: Final = 0.001  # s: the resolution of the loop's timers
_FEW: Final = 256  # cancelled timers that are not worth a look at the whole heap


class Timer:
    """One call that is due at some time, unless it is cancelled."""

    __slots__ = ("_call", "_timers")

    def __init__(self, timers: Timers, call: Callable[[], object]) -> None:
        self._timers = timers
        self._call: Callable[[], object] | None = call

    @property
    def cancelled(self) -> bool:
        """Whether nothing is called any more."""
        return self._call is None

    def cancel(self) -> None:
        """Do not call it. A timer that has passed is left alone."""
        if self._call is not None:
            self._call = None
            self._timers.forgotten()

    def run(self) -> None:
        """Call it, once."""
        call, self._call = self._call, None
        if call is not None:
            call()


class Timers:
    """The timers of one event loop; those of the same time pass in the order they were set."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._cancelled = 0  # of those in the heap
        self._wake: asyncio.Handle | None = None  # for the first one, or for one before it
        self._woken = inf  # when that is

    def call_later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Call it in so many seconds."""
        timer = Timer(self, call)
        due = self._loop.time() + seconds
        heappush(self._heap, (due, next(self._numbers), timer))
        if due < self._woken:
            self._arm(due)
        return timer

    def forgotten(self) -> None:
        """One has been cancelled: where those are the most, the heap is made anew without them."""
        self._cancelled += 1
        if self._cancelled > _FEW and 2 * self._cancelled > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].cancelled]
            heapify(self._heap)
            self._cancelled = 0

    def cancel_all(self) -> None:
        """Call nothing any more."""
        for _, _, timer in self._heap:
            timer.cancel()
        self._heap.clear()
        self._cancelled = 0
        if self._wake is not None:
            self._wake.cancel()
            self._wake, self._woken = None, inf

    def _arm(self, due: float) -> None:
        if self._wake is not None:
            self._wake.cancel()
        self._wake = self._loop.call_later(max(0.0, due - self._loop.time()), self._pass)
        self._woken = due

    def _pass(self) -> None:
        """Call what is due; what is set meanwhile has its turn next time."""
        self._wake, self._woken = None, inf
        now, after = self._loop.time() + _TICK, next(self._numbers)
        try:
            while self._heap and self._heap[0][0] <= now and self._heap[0][1] < after:
                timer = heappop(self._heap)[2]
                self._cancelled -= timer.cancelled
                timer.run()
        finally:  # also for those behind one that has raised
            if self._heap:
                self._arm(self._heap[0][0])


# When Python looks for garbage: between the session's work, not in the middle of it.
#
# A session of many ranks has hundreds of thousands of objects that live as long as it does, and
# nearly all others end by themselves as soon as they are not used. Python's collector would go
# through all of them again and again while they are made (measured: a quarter of the CPU of
# attaching 4,096 ranks). So what is there at a quiet moment is set aside (`gc.freeze`), and only
# what is new is looked at in between, every few seconds. At the next quiet moment everything is
# looked at once: memory stays flat.
#
# What the C library has got back by then it keeps, in pieces: after an hour of clients that come
# and go it had 30 MB of them (measured). So it is told to return them to the system at such a
# moment.

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
