"""A process of this machine that is not our child: whether it runs, and its end."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress

import anyio

POLL_INTERVAL_S = 0.25  # where the system has no pidfd


class ForeignProcess:
    """A process whose exit code only its parent knows. Raises ProcessLookupError if gone."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def alive(self) -> bool:
        """Whether it has not ended; a zombie has."""
        if self._descriptor is not None:
            return not select.select([self._descriptor], [], [], 0)[0]
        with suppress(ProcessLookupError):
            os.kill(self.pid, 0)
            return True
        return False

    async def ended(self) -> None:
        """Wait until it has ended."""
        if self._descriptor is not None:
            await anyio.wait_readable(self._descriptor)
        while self.alive():  # noqa: ASYNC110  (there is no event)
            await anyio.sleep(POLL_INTERVAL_S)

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self.alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
