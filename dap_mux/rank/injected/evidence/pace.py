"""Watches for some seconds where the main thread is, and when communication calls begin and end.

A thread of ours samples the main thread, which costs it about a hundredth of its time. What has
been switched on for the look is switched off at its end, whether or not anybody asks for more.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any

SWITCH = "dap_mux.rank.comm.switch"
C10D, MPI = "torch.distributed.distributed_c10d", "mpi4py.MPI"
MAX_CHARS = 60_000  # debugpy cuts longer results, and cut JSON is none
MOST_CALLS = 900
MOST_PAUSES = 10_000  # a forked child has the callback, and no thread that would take it away
INTERVAL_S, LATER_S = 0.01, 0.05
SHORT_S, STUCK_S, LONG_S = 4.0, 8.0, 20.0
ENOUGH = 24
"""Calls after which a short look is enough."""
NO_RECORD = "its communication calls are not recorded: start the job by `dap-mux run --comm time`"
NO_GROUP = "it uses neither torch.distributed nor mpi4py"
NOT_FROM_START = (
    "its calls of mpi4py are not recorded from its start, so they have no numbers: start the job "
    "by `dap-mux run --comm time`"
)
NO_CALLS = "no communication call has begun during the look"


class Look(threading.Thread):
    """One look, from its beginning to its end."""

    def __init__(self, module: Any, sent: dict[str, Any]) -> None:
        super().__init__(name="dap-mux pace", daemon=True)
        vars(self)["pydev_do_not_trace"] = vars(self)["is_pydev_daemon_thread"] = True
        self.problem = self._log = ""
        self.began = self.ended = _now()
        self._stacks = module(sent, "stacks")
        self._groups = module(sent, "flight_recorder")
        self._libraries = self._stacks.library_folders()
        self._switch: Any = None
        self._records: list[Any] = []
        self._is_own = False  # the watch is there for this look only
        self._spots: dict[tuple[str, str, int, str], int] = {}
        self._samples: list[tuple[int, int, int]] = []
        self._pauses: list[tuple[int, int]] = []
        self._collecting = 0
        self._had, self._starved = _scheduled()
        self._ran = 0
        self._ends: dict[Any, int] = {}

    def run(self) -> None:
        """Look until enough has been seen."""
        try:
            self._begin()
            if not self.problem:
                self._watch()
        except Exception as error:  # noqa: BLE001  (private parts of torch: the job goes on)
            self.problem = f"{type(error).__name__}: {error}"
        finally:
            self._end()

    def _begin(self) -> None:
        has_torch = C10D in sys.modules and sys.modules[C10D].is_initialized()
        if not has_torch and MPI not in sys.modules:
            self.problem = NO_GROUP
            return
        try:
            self._switch = importlib.import_module(SWITCH)
        except ImportError:
            self.problem = NO_RECORD
            return
        self._find_records()
        if has_torch and self._switch.record() is None:
            # In the main thread, perhaps a moment later: it may wait in C.
            self._is_own = True
            self._switch.begin("time", self._failed)
        elif not self._records:
            self.problem = NOT_FROM_START

    def _find_records(self) -> None:
        """Take torch's record, and mpi4py's if all ranks have counted its calls alike."""
        mpi = self._switch.mpi()
        found = [self._switch.record(), mpi.record if mpi and mpi.record.from_start else None]
        self._records = [record for record in found if record is not None]

    def _failed(self, problem: str) -> None:
        self._log = problem

    def _watch(self) -> None:
        gc.callbacks.append(self._collects)
        passed = 0.0
        while passed < SHORT_S or (passed < LONG_S and not self._has_enough()):
            time.sleep(INTERVAL_S if passed < SHORT_S else LATER_S)
            if not self._records:
                self._find_records()
            self._sample()
            passed = (self.ended - self.began) / 1e6

    def _has_enough(self) -> bool:
        if not self._records:
            return True
        began = [call for call in self._last() if call.began // 1000 >= self.began]
        is_late = self.ended - self.began >= STUCK_S * 1e6
        is_stuck = not began and any(call.is_open for call in self._kept())
        return (is_late and is_stuck) or len(began) >= ENOUGH

    def _last(self) -> list[Any]:
        return [call for record in self._records for call in [*record.last]]

    def _kept(self) -> list[Any]:
        return [call for record in self._records for call in [*record.kept.values()]]

    def _sample(self) -> None:
        walked = self._stacks.walk(False)
        self.ended = _now()
        if walked:
            spot = self._spot(walked[0][1])
            starved = self._starved
            ran, self._starved = _scheduled()
            self._ran = ran - self._had
            place = self._spots.setdefault(spot, len(self._spots))
            self._samples.append((self.ended, place, self._starved - starved))
        for call in self._kept():
            if not call.ended and not call.is_open:
                self._ends.setdefault(call, self.ended)

    def _spot(self, places: list[Any]) -> tuple[str, str, int, str]:
        """Return the innermost frame of the user's code, and what of a library it has called."""
        inner = ""
        for place in reversed(places):
            if not self._stacks.is_library(place.path, self._libraries):
                return place.path, place.f_code.co_name, place.f_lineno, inner
            inner = getattr(place.f_code, "co_qualname", place.f_code.co_name)
        last = places[-1]
        return last.path, last.f_code.co_name, last.f_lineno, ""

    def _collects(self, phase: str, _: dict[str, int]) -> None:
        """Note a pause; the garbage collection calls this, in whatever thread it runs."""
        if phase == "start":
            self._collecting = _now()
        elif self._collecting and len(self._pauses) < MOST_PAUSES:
            self._pauses.append((self._collecting, _now()))

    def _end(self) -> None:
        with suppress(ValueError):
            gc.callbacks.remove(self._collects)
        if self._is_own and self._switch.mode() == "time":  # nobody has asked for another since
            self._switch.begin("off", self._failed)
        if self._is_own and not self._records:
            self.problem = self.problem or self._log or NO_RECORD

    def told(self) -> dict[str, Any]:
        """Return the fields of `Pace`, in dap_mux/pure/insight/numerics/pace.py."""
        names = _Names(), _Names(), _Names()
        calls = [call for call in self._last() if not _is_between_two(call.kind)][-MOST_CALLS:]
        members = {
            group: call.ranks for group, call in {call.group: call for call in calls}.items()
        }
        listed = [self._told(call, *names) for call in calls]
        if not self.problem and not any(call.began // 1000 >= self.began for call in calls):
            self.problem = NO_CALLS
        return {
            "host": f"{socket.gethostname()} {_boot()}",
            "base": self.began,
            "began": 0,
            "ended": self.ended - self.began,
            "ran": self._ran,
            "processors": _processors(),
            "problem": self.problem,
            "groups": [(self._group_name(*one), members[one]) for one in names[0]],
            "kinds": [*names[1]],
            "lines": [*names[2]],
            "calls": listed,
            "spots": [*self._spots],
            "samples": [(at - self.began, *rest) for at, *rest in self._samples],
            "pauses": [(at - self.began, end - self.began) for at, end in self._pauses],
        }

    def _group_name(self, name: str, description: str) -> str:
        """Return a group's name; a communicator's description is its ranks."""
        is_of_mpi = description.replace(",", "").isdigit()
        return name if is_of_mpi else str(self._groups.group_name(name, description))

    def _told(self, call: Any, groups: Any, kinds: Any, lines: Any) -> tuple[Any, ...]:
        ended = call.ended // 1000 or self._ends.get(call) or (None if call.is_open else _now())
        return (
            groups.place(call.group),
            kinds.place(call.kind),
            lines.place(call.place),
            call.number,
            call.began // 1000 - self.began,
            None if ended is None else ended - self.began,
        )


def _is_between_two(kind: str) -> bool:
    """Whether it is a kind of `send` or `recv`, of torch or of MPI."""
    return "send" in kind.lower() or "recv" in kind.lower()


class _Names(dict):  # type: ignore[type-arg]
    """Names by their places in a list."""

    def place(self, name: Any) -> int:
        return int(self.setdefault(name, len(self)))


def _now() -> int:
    """Return µs by the clock of the record's times."""
    return time.time_ns() // 1000


def _scheduled() -> tuple[int, int]:
    """Return for how many µs the main thread has had a processor, and has waited for one.

    Both are 0 beside Linux.
    """
    pid = os.getpid()  # also the main thread's number
    try:
        with open(f"/proc/self/task/{pid}/schedstat", encoding="ascii") as file:  # noqa: PTH123
            ran, waited, *_ = file.read().split()
            return int(ran) // 1000, int(waited) // 1000
    except (OSError, ValueError):
        return 0, 0


def _processors() -> int:
    """Return how many the main thread may use: its number is that of the process."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(os.getpid())) if affinity is not None else os.cpu_count() or 0


def _boot() -> str:
    """Return what tells two machines of one name apart, "" where there is no such thing."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


_looks: list[Look] = []


def begin(module: Any, sent: dict[str, Any]) -> str:
    """Begin a look unless one is under way; `module`, `sent`: as of the bundle."""
    if not _looks or not _looks[-1].is_alive():
        _looks[:] = [Look(module, sent)]
        _looks[-1].start()
    return "true"


def told(plain: Any) -> str:
    """Return JSON of a `Pace`, `null` while the look is under way; `plain`: of the bundle."""
    if not _looks or _looks[-1].is_alive():
        return "null"
    found = _looks[-1].told()
    while True:
        text = json.dumps(plain(found), separators=(",", ":"))
        if len(text) <= MAX_CHARS or not (found["calls"] or found["samples"]):
            return text
        for name in ("calls", "samples", "pauses"):
            found[name] = found[name][len(found[name]) // 2 + 1 :]
