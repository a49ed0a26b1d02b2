"""A process of this machine that somebody else has started: whether it lives, and its end."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress

import anyio

POLL_INTERVAL_S = 0.25  # s between two looks where the system has no file descriptor for a process


class ForeignProcess:
    """Not our child: its exit code is its parent's to know. Raises ProcessLookupError if gone."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def alive(self) -> bool:
        """Whether it has not ended; one that ended and that nobody has waited for is dead."""
        if self._descriptor is not None:
            return not select.select([self._descriptor], [], [], 0)[0]
        with suppress(ProcessLookupError):
            os.kill(self.pid, 0)
            return True
        return False

    async def ended(self) -> None:
        """Wait for its end."""
        if self._descriptor is not None:
            await anyio.wait_readable(self._descriptor)
        while self.alive():  # noqa: ASYNC110  (nobody tells us)
            await anyio.sleep(POLL_INTERVAL_S)

    def kill(self) -> None:
        """End it at once, if it lives."""
        if self.alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Nobody asks any more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
