"""One local rank: its process, its log, and the file in which it reports that it is ready."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import anyio
from anyio import to_thread

from dap_mux.cluster.records import RankRecord, record_of
from dap_mux.errors import DapMuxError
from dap_mux.printable import printable
from dap_mux.rank.ready import failure_file

READY_POLL_INTERVAL_S = 0.02  # seconds
TAIL_LINES = 20
TAIL_BYTES = 8192


class RankEnded(DapMuxError):
    """A rank ended before it listened for a debugger."""


class RankProcess:
    """A running (or ended) process of one rank, the leader of a process group of its own."""

    def __init__(
        self, rank: int, process: subprocess.Popen[bytes], log_path: Path, ready_file: Path
    ) -> None:
        self.rank = rank
        self.pid = process.pid
        self.log_path = log_path
        self._process = process
        self.failure_file = failure_file(ready_file)
        self._ready_file = ready_file
        self._ended = anyio.Event()
        self._being_stopped = False

    @property
    def being_stopped(self) -> bool:
        """Whether we have sent it a signal."""
        return self._being_stopped

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return not self._ended.is_set()

    @property
    def exit_code(self) -> int | None:
        """None while it runs; -n where signal n ended it."""
        return self._process.returncode if self._ended.is_set() else None

    async def ready(self) -> RankRecord:
        """Return its record, once it has reported that it listens. Raises `RankEnded`.

        Polled 50 times a second while it starts, for about half a second: watching the folder
        would save nothing, and differs between systems.
        """
        while not self._ready_file.exists():
            if self._ended.is_set() and not self._ready_file.exists():
                raise RankEnded(self._obituary())
            await anyio.sleep(READY_POLL_INTERVAL_S)
        entry = json.loads(self._ready_file.read_text("utf-8"))
        return replace(record_of(entry, f"rank {self.rank}"), rank=self.rank, ready=True)

    async def wait(self) -> int:
        """Return the exit code, -n for signal n, once it has ended."""
        await self._ended.wait()
        return self._process.returncode

    async def watch(self) -> None:
        """Wait for the end of the process. To be run once, by its owner."""
        await end_of(self.pid)
        if self._being_stopped:
            # Not reaped yet, so its group id cannot have been reused.
            signal_group(self.pid, signal.SIGKILL)
        self._process.wait()
        self._ended.set()

    def stop(self, number: signal.Signals) -> None:
        """Send a signal to the process and its children, unless it has ended."""
        self._being_stopped = True
        if not self._ended.is_set():
            signal_group(self.pid, number)

    def disown(self) -> None:
        """Let it continue after us."""
        if not self._ended.is_set():
            self._process.returncode = 0  # otherwise `Popen` warns that it still runs

    def log_tail(self) -> str:
        """Return the last lines of its log, escaped for a terminal."""
        with self.log_path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").splitlines()
        return "\n".join(printable(line) for line in lines[-TAIL_LINES:])

    def _obituary(self) -> str:
        end = describe_exit(self._process.returncode)
        tail = self.log_tail() or "(no output)"
        return (
            f"rank {self.rank} {end} before it listened for a debugger; "
            f"the end of {self.log_path}:\n{tail}"
        )


def describe_exit(code: int) -> str:
    """Return `exited with 3` or `was terminated by SIGTERM`."""
    if code >= 0:
        return f"exited with {code}"
    try:
        return f"was terminated by {signal.Signals(-code).name}"
    except ValueError:
        return f"was terminated by signal {-code}"


def signal_group(leader: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if it still exists."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        pass  # it has just ended; `watch` is about to notice
    except PermissionError:
        pass  # macOS raises this for a group of zombies


async def end_of(pid: int) -> None:
    """Wait until the child `pid` has ended, without reaping it."""
    if hasattr(os, "pidfd_open"):
        descriptor = os.pidfd_open(pid)
        try:
            await anyio.wait_readable(descriptor)
        finally:
            os.close(descriptor)
        return
    options = os.WEXITED | os.WNOWAIT
    # A separate limiter: 40 ranks would use up the default one.
    limiter = anyio.CapacityLimiter(1)
    await to_thread.run_sync(
        os.waitid, os.P_PID, pid, options, abandon_on_cancel=True, limiter=limiter
    )
