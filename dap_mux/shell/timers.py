"""Many deadlines behind one timer of the event loop.

Each rank has several deadlines at a time, and nearly all are cancelled: a timer of the loop's for
each costs ten times as much memory, and twice the time, of an entry in a heap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import Final

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
