"""A launcher that starts the ranks, and the rendezvous folder where they report."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from dap_mux.cluster.job import ForeignProcess, Job, end_of, signal_group
from dap_mux.cluster.records import RankRecord, record_of
from dap_mux.pure.errors import UsageError
from dap_mux.rank.environ import MARK, launcher_variables
from dap_mux.rank.frameworks.launched import HOOK_OPTIONS
from dap_mux.rank.ready import RENDEZVOUS, failure_file
from dap_mux.system.programs import debugpy_folder, restore_limit
from dap_mux.system.temporary_folders import RANKS, hold, temporary_folder
from dap_mux.system.user_files import parse_json, read_regular

POLL_INTERVAL_STARTING_S = 0.02  # while ranks are missing
POLL_INTERVAL_S = 0.25  # afterwards, when only restarts bring more
STOP_TIMEOUT_S = 35.0  # torchrun gives its ranks 30 s


@dataclass(frozen=True, kw_only=True)
class LauncherJob(Job):
    """A launcher's `command` line, as the user typed it."""

    output: Path | None = None
    """The file for the output of the launcher and its ranks; None: our own streams.

    With a file, our standard input belongs to the editor or the console.
    """

    def environment(self, rendezvous: Path) -> dict[str, str]:
        """The launcher's environment, which its ranks inherit."""
        environ = self.inherited(without=(MARK,))  # another session's, whose rank started us
        hook = str(Path(__file__).parents[1] / "rank" / "hook")
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, (hook, environ.get("PYTHONPATH"))))
        environ[RENDEZVOUS] = str(rendezvous)
        orders = {
            "base_port": self.base_port,
            "wait": self.wait,
            "stop_on_entry": self.stop_on_entry,
            "debugpy": debugpy_folder(),
            "outer": launcher_variables(environ),
        }
        environ[HOOK_OPTIONS] = json.dumps(orders)
        return environ

    def program(self) -> str:
        """Return the path of the launcher. Raises UsageError."""
        path = {**os.environ, **self.env}.get("PATH")
        found = shutil.which(self.command[0], path=path)
        if found is None and self.cwd:
            found = shutil.which(str(self.cwd / self.command[0]))
        if found is None:
            raise UsageError(
                f"no program {self.command[0]} in PATH; install it, or activate the environment "
                "that has it"
            )
        return found


@dataclass(frozen=True)
class RankReport:
    """A rank has reported that it listens. `process`: None if it is on another machine."""

    record: RankRecord
    host: str
    pid: int
    process: ForeignProcess | None


# The launcher's command line is not changed. Its Python programs become ranks by their environment:
# PYTHONPATH begins with our hook (`dap_mux.rank.hook`), and each rank writes one record into the
# rendezvous folder. The launcher has a process group of its own, so that a Ctrl-C in the terminal
# reaches only us and is passed on once.
class LaunchedJob:
    """The running launcher. `async with` starts it, and at its end stops it if it still runs."""

    def __init__(self, job: LauncherJob) -> None:
        self.job = job
        self._seen: set[str] = set()
        self._processes: list[ForeignProcess] = []
        self._left_running = False

    async def __aenter__(self) -> LaunchedJob:
        self._folder = temporary_folder(RANKS)
        self.rendezvous = self._folder.__enter__()
        try:
            self.start()
        except BaseException:
            self._remove_folder()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._left_running:
            self._process.returncode = 0  # otherwise `Popen` warns that it still runs
            return  # restarted ranks still need the folder
        with anyio.CancelScope(shield=True):
            await self.stop()
        for process in self._processes:
            process.close()
        self._remove_folder()

    def _remove_folder(self) -> None:
        shutil.rmtree(self.rendezvous, ignore_errors=True)
        self._folder.__exit__(None, None, None)

    def start(self) -> None:
        """Start the launcher. Raises UsageError."""
        self._missing = -1  # ranks that have not reported yet; -1: unknown
        program = self.job.program()
        output = self.job.output or Path(os.devnull)
        output.parent.mkdir(parents=True, exist_ok=True)
        with output.open("ab") as log:
            hold(log)
            out = log if self.job.output else None
            try:
                self._process = subprocess.Popen(
                    self.job.command,
                    executable=program,
                    cwd=self.job.cwd,
                    env=self.job.environment(self.rendezvous),
                    stdin=subprocess.DEVNULL if out or not _is_fed() else None,
                    stdout=out,
                    stderr=out and subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=restore_limit,  # noqa: PLW1509  (takes no lock)
                )
            except OSError as error:
                raise UsageError(f"cannot start {program}: {error.strerror}") from error

    @property
    def pid(self) -> int:
        """The launcher's pid."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether the launcher has not ended."""
        return self._process.poll() is None

    async def reports(self) -> AsyncIterator[RankReport]:
        """Yield each rank as it reports that it listens."""
        while True:
            for path in sorted(self.rendezvous.glob("*.json")):
                if path.name not in self._seen:
                    self._seen.add(path.name)
                    yield self._read(path)
            await anyio.sleep(POLL_INTERVAL_STARTING_S if self._missing else POLL_INTERVAL_S)

    def _read(self, path: Path) -> RankReport:
        record = record_of(parse_json(read_regular(path)), path.name)
        host, _, pid = path.stem.rpartition("-")
        self._missing -= 1
        if self._missing < 0:
            self._missing = (record.world_size or 1) - 1
        process = None
        if host == socket.gethostname():
            with suppress(ProcessLookupError):
                process = ForeignProcess(int(pid))
                self._processes.append(process)
        rank = replace(record, rank=record.rank or 0, ready=True)
        return RankReport(rank, host, int(pid), process)

    async def ended(self) -> int:
        """Wait for the launcher's end; return its exit code, -n for signal n."""
        if self._process.poll() is None:
            await end_of(self._process.pid)
        return self._process.wait()

    def failure_file(self, host: str, pid: int) -> Path:
        """Return the file in which a rank reports a failure."""
        return failure_file(self.rendezvous / f"{host}-{pid}.json")

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the launcher's process group, if it still runs."""
        if self._process.poll() is None:
            signal_group(self._process.pid, number)

    async def stop(
        self, first: signal.Signals = signal.SIGTERM, patience: float = STOP_TIMEOUT_S
    ) -> None:
        """Ask the launcher to end its job; after `patience` seconds kill it and its ranks."""
        if self._process.poll() is not None:
            return
        self.send_signal(first)
        with anyio.move_on_after(patience):
            await self.ended()
            return
        self.send_signal(signal.SIGKILL)
        for process in self._processes:
            process.kill()
        await self.ended()

    def leave_running(self) -> None:
        """Do not stop the launcher when the `async with` block ends."""
        self._left_running = True


def _is_fed() -> bool:
    """Whether to pass our input on: a pipe or file, but not a terminal (foreground group only)."""
    return sys.stdin is not None and not sys.stdin.closed and not sys.stdin.isatty()
