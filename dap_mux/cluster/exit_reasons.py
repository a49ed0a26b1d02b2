"""Describes how a process of this machine ended: its code, its signal, or lack of memory."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from dap_mux import procfs

KERNEL_LOG: Final = Path("/dev/kmsg")
CGROUPS: Final = Path("/sys/fs/cgroup")
CLOCK_SLACK_S: Final = 1.0  # between the kernel's clock and ours
_FIRST_NAMESPACE: Final = "pid:[4026531836]"
_OOM_KILL: Final = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_MAX_KERNEL_RECORDS: Final = 100_000  # of the kernel's log at most; it holds fewer


class ExitReasons:
    """Describes how processes ended. Create it before they start: it compares cgroup counters."""

    def __init__(self, cgroups: Path = CGROUPS, kernel_log: Path | None = None) -> None:
        self._counter = _counter(cgroups)
        self._kernel_log = kernel_log or _kernel_log()
        self._since = time.monotonic()
        self._count = self._killed()

    def of(self, pid: int, code: int, *, by_us: bool = False) -> str:
        """Return `exit code 3`, `SIGSEGV (11)`, or the reason for a SIGKILL that is not ours."""
        if code >= 0:
            return f"exit code {code}"
        name = name_of(-code)
        if -code != signal.SIGKILL or by_us:
            return name
        before, self._count = self._count, self._killed()
        if killed := self.if_killed_for_memory(pid):
            return killed
        if None not in (before, self._count) and before != self._count:
            return (
                f"{name}, perhaps out of memory: the kernel killed a process of its cgroup for that"
            )
        return f"{name}, not sent by dap-mux"

    def if_killed_for_memory(self, pid: int) -> str:
        """Return a description if the kernel's log says that it killed this process for memory."""
        if not self._is_in_kernel_log(pid):
            return ""
        return f"{name_of(signal.SIGKILL)}, out of memory, according to the kernel's log"

    def _killed(self) -> int | None:
        """Count the processes of our cgroup, which is the ranks', that were killed for memory."""
        if self._counter is not None:
            with suppress(OSError):
                found = _OOM_KILL.search(self._counter.read_text("ascii", "replace"))
                return int(found[1]) if found else None
        return None

    def _is_in_kernel_log(self, pid: int) -> bool:
        says = re.compile(rb"\d+,\d+,(\d+),.*Killed process %d \(" % pid)
        if self._kernel_log is None:
            return False
        with suppress(OSError):
            log = os.open(self._kernel_log, os.O_RDONLY | os.O_NONBLOCK)
            try:
                for _ in range(_MAX_KERNEL_RECORDS):
                    found = says.match(_record(log))
                    if found and int(found[1]) / 1e6 >= self._since - CLOCK_SLACK_S:
                        return True
            except BlockingIOError:  # the end of it
                return False
            finally:
                os.close(log)
        return False


def name_of(number: int) -> str:
    """Return `SIGSEGV (11)`."""
    with suppress(ValueError):
        return f"{signal.Signals(number).name} ({number})"
    return f"signal {number}"


def _kernel_log() -> Path | None:
    """Return the kernel's log, unless we are in a container, which has pids of its own."""
    with suppress(OSError):
        if procfs.namespace("pid") == _FIRST_NAMESPACE:
            return KERNEL_LOG
    return None


def _record(log: int) -> bytes:
    try:
        record = os.read(log, 8192)
    except BrokenPipeError:  # overwritten in the meantime; the next read continues after it
        return b""
    if not record:
        raise BlockingIOError
    return record


def _counter(cgroups: Path) -> Path | None:
    """Return the file with the counter of our cgroup: version 2 or 1, in a container or not."""
    with suppress(OSError):
        for kinds, path in procfs.cgroups():
            if kinds in ("", "memory"):
                base = cgroups / kinds
                for folder in (base / path.strip("/"), base):
                    for name in ("memory.events", "memory.oom_control"):
                        if (folder / name).exists():
                            return folder / name
    return None
