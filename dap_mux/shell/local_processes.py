"""Detects the end of ranks' processes on this machine."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from typing import Final

from dap_mux import procfs

_IDENTITY: Final = r"([0-9a-f-]{36}) (pid:\[[0-9]{1,20}\]) ([0-9]{1,10}) ([0-9]{1,20})"
FIRST_POLL_INTERVAL_S: Final = 0.005  # doubling up to the longest
MAX_POLL_INTERVAL_S: Final = 0.32


def is_over(process: str) -> bool:
    """Whether a process has ended; False where that cannot be seen from here.

    `process` is the identity that a rank reports: the boot id of its machine, its pid namespace,
    its pid in there, and its start in clock ticks since boot. It is untrusted.
    """
    said = re.fullmatch(_IDENTITY, process)
    if said is None or not _is_here(said[1], said[2]):
        return False
    found = procfs.stat(said[3])
    if found is None:
        return not _exists(int(said[3]))  # other users' processes may be hidden
    return found.ended or found.started != said[4]


def is_here(process: str) -> bool:
    """Whether a process is on this machine, so that its end can be seen."""
    said = re.fullmatch(_IDENTITY, process)
    return said is not None and _is_here(said[1], said[2])


def local_pid(process: str) -> int | None:
    """Return the pid of a process of this machine, which may have ended; None for others."""
    if process.isdecimal():
        return int(process)
    said = re.fullmatch(_IDENTITY, process)
    if said is None or not _is_here(said[1], said[2]):
        return None
    found = procfs.stat(said[3])
    return int(said[3]) if found is None or found.started == said[4] else None


class LocalProcesses:
    """Watches processes of this machine until they end, or are forgotten."""

    def __init__(self) -> None:
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def watch(self, token: int, process: str, tell: Callable[[bool | None], None]) -> None:
        """Report whether it runs, None if that cannot be seen; then report its end.

        A process that is about to end is not reported as running: it closes its sockets first.
        """
        if not is_here(process):
            asyncio.get_running_loop().call_soon(tell, None)
            return
        task = asyncio.get_running_loop().create_task(self._follow(process, tell))
        self._tasks[token] = task
        task.add_done_callback(lambda _: self._tasks.pop(token, None))

    def forget(self, token: int) -> None:
        """Watch this process no longer; others are ignored."""
        if token in self._tasks:
            self._tasks.pop(token).cancel()

    def close(self) -> None:
        """Stop watching."""
        for token in list(self._tasks):
            self.forget(token)

    async def _follow(self, process: str, tell: Callable[[bool | None], None]) -> None:
        pause = FIRST_POLL_INTERVAL_S
        while not is_over(process):
            await asyncio.sleep(pause)
            if pause < MAX_POLL_INTERVAL_S <= 2 * pause:
                tell(True)
            pause = min(2 * pause, MAX_POLL_INTERVAL_S)
        tell(False)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _is_here(boot: str, space: str) -> bool:
    try:
        return (procfs.boot_id(), procfs.namespace("pid")) == (boot, space)
    except OSError:
        return False
