"""What a replay cannot repeat: a program's looks at the clock, and the order of its threads."""

from __future__ import annotations

import datetime as dt
import sys
import threading
import time
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

from dap_mux.rank.comm.mpi import names_of, replace
from dap_mux.rank.comm.record import is_library, place_of

if TYPE_CHECKING:  # a rank may have Python 3.8
    from collections.abc import Callable
    from types import FrameType

CLOCKS = ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time", "time_ns")
DATES = ("now", "utcnow")
POOLS = ("concurrent/futures/thread.py", "multiprocessing/pool.py")
"""Files of the functions in which threads run what programs give them."""


class Unrepeated:
    """Hears of both. `clock`: the line that has read it last; `threads`: that has started one."""

    def __init__(self) -> None:
        self.clock = self.threads = ""
        self._step, self._before = 0, ""

    def begin(self) -> None:
        """Stand before the functions that a program may import from now on."""
        for name in CLOCKS:
            setattr(time, name, _Read(getattr(time, name), self))
        kind = dt.datetime
        for name in DATES:
            with suppress(StopIteration):  # where Python hides the dict of a type
                read = _Read(names_of(kind)[name].__get__, self)
                replace(kind, name, classmethod(read.of_type))
        start = threading.Thread.start

        @wraps(start)
        def started(thread: Any) -> None:
            if _is_programs(thread):
                self.threads = place_of(sys._getframe(1))  # noqa: SLF001
            start(thread)

        threading.Thread.start = started  # type: ignore[method-assign, assignment]

    def called(self, step: int) -> None:
        """A call of a step was equal: what was read two steps before is forgotten."""
        if step != self._step:
            self._step, self._before, self.clock = step, self.clock, ""

    def known(self) -> list[str]:
        """Return them as clauses."""
        clock = self.clock or self._before
        said = [f"it has read the clock at {clock}"] if clock else []
        if self.threads:
            said.append(f"threads that it started at {self.threads} may run in another order")
        return said


class _Read:
    """Stands for a function of C, and as that becomes no method where it is a class's attribute."""

    def __init__(self, read: Callable[..., Any], heard: Unrepeated) -> None:
        self._read, self._heard = read, heard

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self._hear(sys._getframe(1))  # noqa: SLF001
        return self._read(*arguments, **named)

    def of_type(self, kind: type, *arguments: Any, **named: Any) -> Any:
        """Do as a class's method, of any subclass."""
        self._hear(sys._getframe(1))  # noqa: SLF001
        return self._read(None, kind)(*arguments, **named)

    def _hear(self, caller: FrameType) -> None:
        if not is_library(caller.f_code.co_filename):
            self._heard.clock = place_of(caller)


def _is_programs(thread: Any) -> bool:
    """Whether a thread runs what a program has given it, not a library's own."""
    run = getattr(thread, "_target", None) or type(thread).run
    path = getattr(getattr(run, "__code__", None), "co_filename", "<frozen")
    return not is_library(path) or path.replace("\\", "/").endswith(POOLS)
