"""A job that dap-mux starts: its command, its environment and the processes of its ranks."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from dap_mux.cluster.records import RankRecord, record_of
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.printable import printable
from dap_mux.rank.environ import POST_MORTEM
from dap_mux.rank.ready import failure_file
from dap_mux.rank.starter import starter_variables
from dap_mux.system import procfs

DIAL: Final = "DAP_MUX_DIAL"
RECORDER_SIZE: Final = "TORCH_FR_BUFFER_SIZE"
OLD_RECORDER_SIZE: Final = "TORCH_NCCL_TRACE_BUFFER_SIZE"
"""Its name up to torch 2.7; newer ones warn where it is set."""
RECORDER_ENTRIES: Final = "2000"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job to start, by a launcher or without one."""

    command: tuple[str, ...]
    base_port: int = 5678
    wait: bool = True
    """Whether each rank waits for a debugger before its program's first line."""
    stop_on_entry: bool = False
    """Whether each rank stops at its program's first line."""
    env: Mapping[str, str | None] = field(default_factory=dict)
    """Added to our own environment; None removes a variable."""
    cwd: Path | None = None
    hold: str = ""
    """`DAP_MUX_POST_MORTEM` of the ranks, unless our own environment has it; "" sets none."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Others of the ranks, likewise."""
    ends_with_us: bool = False
    """Whether ranks that have never had a debugger end with this process."""

    def inherited(self, without: Sequence[str] = ()) -> dict[str, str]:
        """Return our own environment but for these variables, with what the job's ranks need.

        An address to dial that we have inherited is another session's.
        """
        left_out = (DIAL, *without)
        ours = {name: text for name, text in os.environ.items() if name not in left_out}
        given = {**ours, **self.env}
        wanted = {POST_MORTEM: self.hold, **self.variables}
        return {
            **recorder_variables(given),
            **{name: text for name, text in wanted.items() if text},
            **{name: text for name, text in given.items() if text is not None},
            **starter_variables(ends_with_us=self.ends_with_us),
        }


def recorder_variables(environ: Container[str]) -> dict[str, str]:
    """Return what switches torch's flight recorder on, for `why` to ask; none if the user did."""
    if RECORDER_SIZE in environ or OLD_RECORDER_SIZE in environ:
        return {}
    return {RECORDER_SIZE: RECORDER_ENTRIES}


# The processes of ranks: our own children, and those of a launcher.

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
    with suppress(ValueError):
        return f"was terminated by {signal.Signals(-code).name}"
    return f"was terminated by signal {-code}"


def signal_group(leader: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if it still exists."""
    # It may just have ended, which `watch` is about to notice; macOS refuses a group of zombies.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


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


ENDED_POLL_INTERVAL_S = 0.25  # where the system has no pidfd


class ForeignProcess:
    """A process whose exit code only its parent knows. Raises ProcessLookupError if gone."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def alive(self) -> bool:
        """Whether it has not ended; a zombie has."""
        if self._descriptor is not None:
            return not select.select([self._descriptor], [], [], 0)[0]
        return procfs.exists(self.pid)

    async def ended(self) -> int | None:
        """Wait until it has ended; return its exit code.

        None where its parent has waited for it (mpirun does so at once, torchrun ten times a
        second), and the kernel is older than 6.15.
        """
        if self._descriptor is not None:
            await anyio.wait_readable(self._descriptor)
        while self.alive():  # noqa: ASYNC110  (there is no event)
            await anyio.sleep(ENDED_POLL_INTERVAL_S)
        status = procfs.wait_status(self.pid)
        if status is None and self._descriptor is not None:
            status = procfs.reaped_status(self._descriptor)
        return None if status is None else os.waitstatus_to_exitcode(status)

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


# How a process of this machine ended: its code, its signal, or lack of memory.

CGROUPS: Final = Path("/sys/fs/cgroup")
CLOCK_SLACK_S: Final = 1.0  # between the kernel's clock and ours
_FIRST_NAMESPACE: Final = "pid:[4026531836]"
_OOM_KILL: Final = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


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
        records = procfs.kernel_records(self._kernel_log) if self._kernel_log else ()
        found = filter(None, map(says.match, records))
        return any(int(each[1]) / 1e6 >= self._since - CLOCK_SLACK_S for each in found)


def name_of(number: int) -> str:
    """Return `SIGSEGV (11)`."""
    with suppress(ValueError):
        return f"{signal.Signals(number).name} ({number})"
    return f"signal {number}"


def _kernel_log() -> Path | None:
    """Return the kernel's log, unless we are in a container, which has pids of its own."""
    with suppress(OSError):
        if procfs.namespace("pid") == _FIRST_NAMESPACE:
            return procfs.KERNEL_LOG
    return None


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
