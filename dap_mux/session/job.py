"""A job that the session has started and owns: its signals, its restarts and its end.

How ranks are started, followed and stopped differs: `local_job` starts them itself,
`launcher_job` leaves that to a launcher.
"""

from __future__ import annotations

import ast
import asyncio
import json
import logging
import os
import signal
import stat
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Protocol

import anyio
import msgspec
from msgspec import Struct

from dap_mux.cluster.job import ExitReasons
from dap_mux.engine import inputs
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import RankId, fold
from dap_mux.rank.environ import COMM, COMM_FILE, EQUAL, STEP
from dap_mux.session.end_of_job import Endings, Missing
from dap_mux.session.session import Session
from dap_mux.session.terminal_output import Echo, say
from dap_mux.system.config import JobOptions
from dap_mux.system.session_files import SessionFile
from dap_mux.system.user_files import foreign

logger = logging.getLogger("dap_mux.session")
CONSOLE_HINT_S: Final = 10.0  # until who has no editor open is told what else there is
STOP_NOTICE_S: Final = 1.0  # after a signal, before the user is told which processes remain
# Open files for each rank that runs here: its process descriptor and debugpy's port.
FILES_PER_OWN_RANK: Final = 2


class InlineConsole(Protocol):
    """A console in the job's terminal, with a client connection to the session.

    `takes_terminal`: the launcher's output goes to a file, from which it is shown.
    """

    takes_terminal: bool

    async def run(self) -> bool:
        """Interact with the user until either side leaves; return whether no debugger is left.

        Must not raise.
        """

    def interrupt(self) -> bool:
        """Handle a Ctrl-C; return False where it is meant for the job."""


@dataclass(eq=False)
class Job(ABC):
    """Follows the ranks of a job, and stops or restarts them as signals and clients ask.

    `dial`: ranks connect to the session. `terminal`: a person has started the job in a terminal,
    and ends it by Ctrl-C. `echo`: repeats the ranks' output there. `why_after`: how often (s) to
    look for a hang while nobody watches.
    """

    target: ClassVar[str]
    """The receiver of a stop, in messages: `every rank` or `the launcher`."""
    notices: ClassVar[tuple[str, str]]
    """The messages for a signal that is about to be handled: for the first one, and for others."""
    session: Session
    _: KW_ONLY
    dial: bool = False
    terminal: bool = True
    console: InlineConsole | None = None
    echo: Echo | None = None
    why_after: float | None = None
    _signal: signal.Signals | None = None

    def __post_init__(self) -> None:
        self._failures, self._exit_reasons = FailureReports(self.session), ExitReasons()
        self._endings = Endings(self._exit_reasons)

    @abstractmethod
    async def serve(self) -> int:
        """Follow the ranks until the job has ended; return its exit code."""

    @abstractmethod
    async def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """Ask everything to end by this signal, and kill whatever is left after a time limit."""

    @abstractmethod
    async def start_again(self, to: str) -> None:
        """Start the ranks again; `to`: where a replay stops. Raises UsageError."""

    @abstractmethod
    def running(self) -> dict[RankId, int]:
        """Return the processes of this machine's ranks that run."""

    @abstractmethod
    def signal_again(self, number: signal.Signals) -> None:
        """Handle a signal that arrives while `stop` is still waiting."""

    @abstractmethod
    def still_running(self) -> str:
        """Describe what `stop` is waiting for and what happens next; '' for nothing."""

    def missing(self) -> Missing:
        """Return the ranks whose end is not known by their files."""
        return Missing()

    @property
    def ending(self) -> bool:
        """Whether a signal or a client has asked for the end."""
        return self._signal is not None or self.session.driver.end_requested.is_set()

    @property
    def restarting(self) -> bool:
        """Whether a client has asked for a restart that has not begun yet."""
        return self.session.driver.restart_requested.is_set()

    async def run(self) -> int:
        """Serve until the job has ended; return its exit code as a shell would show it."""
        async with anyio.create_task_group() as tasks:
            if self.terminal:
                tasks.start_soon(self._handle_signals)
            if self.console:
                tasks.start_soon(self.console.run)
            if self.echo:
                tasks.start_soon(self.echo.follow)
            if self.why_after:
                # Here, because an editor waits for what its adapter imports.
                from dap_mux.session.hang_watch import watch_for_hangs  # noqa: PLC0415

                driver = self.session.driver
                tasks.start_soon(
                    watch_for_hangs, self.why_after, self.running, lambda: driver.has_clients
                )
            tasks.start_soon(self._stop_on_request)
            code = await self.serve()
            tasks.cancel_scope.cancel()
        if self.echo:
            self.echo.catch_up(final=True)
        return 128 + self._signal if self._signal is not None else code

    def report_end(self, code: int, options: JobOptions) -> None:
        """Say which rank of a job that has failed was the first, unless somebody has ended it."""
        if code and not self.ending:
            self._endings.report(code, self.missing(), options)

    async def stop_for_restart(self) -> None:
        """Wait until a client asks for a restart, and stop the ranks."""
        await self.session.driver.restart_requested.wait()
        say(f"the debugger asked to restart the job: stopping {self.target}")
        await self.stop()

    async def restart(self) -> bool:
        """Start the ranks again and tell the engine. Whether that succeeded."""
        self.session.driver.restart_requested.clear()
        self._endings.clear()
        problem = ""
        try:
            await self.start_again(self.session.driver.restart_to)
        except UsageError as error:
            problem = str(error)
        self.session.driver.feed(inputs.JobRestarted(problem))
        return not problem

    async def _stop_on_request(self) -> None:
        await self.session.driver.end_requested.wait()
        say(f"the debugger asked to end the job: stopping {self.target}")
        await self.stop()

    async def _handle_signals(self) -> None:
        """Ctrl-C and SIGTERM end the job, as they would without us; the exit code says so."""
        number = await self.session.interrupted()
        while number is signal.SIGINT and self.console and self.console.interrupt():
            number = await self.session.interrupted()
        self._signal = number
        say(f"{number.name}: {self.notices[0]}")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._report_still_running)
            tasks.start_soon(self._handle_further_signals)
            await self.stop(number)
            tasks.cancel_scope.cancel()

    async def _handle_further_signals(self) -> None:
        while True:
            number = await self.session.interrupted()
            say(f"{number.name}: {self.notices[1]}")
            self._signal = number
            self.signal_again(number)

    async def _report_still_running(self) -> None:
        await anyio.sleep(STOP_NOTICE_S)
        if left := self.still_running():
            say(f"waiting for {left}")


async def greet(session: Session, name: str, text: str, *, waits: bool, console: bool) -> None:
    """Announce a new session to the user's editor and to the user.

    `waits`: ranks wait for a debugger, so the user needs to know how to attach one.
    """
    announced = not console and await announce(session.file, name)
    say(text)
    if waits and not console and not announced:
        say('ranks wait for a debugger: in VS Code start "Remote Attach to Cluster"')
        asyncio.get_running_loop().call_later(CONSOLE_HINT_S, _name_console, session)


def _name_console(session: Session) -> None:
    if not session.driver.has_clients:
        say("or type: dap-mux console")


def with_processes(ranks: Mapping[RankId, int | None]) -> str:
    """Return `ranks 0-1 (processes 41, 42)`: the ranks, and their processes where known."""
    pids = [str(pid) for pid in ranks.values() if pid is not None]
    name = f"{'ranks' if len(ranks) > 1 else 'rank'} {fold(ranks)}"
    return (
        f"{name} ({'processes' if len(pids) > 1 else 'process'} {', '.join(pids)})"
        if pids
        else name
    )


# Failures that ranks of this machine report in files: while held at one, and at their end.

FAILURE_POLL_INTERVAL_S: Final = 0.25
REMINDER_INTERVAL_S: Final = 5.0  # to update the time for which a rank is still held


@dataclass(eq=False)
class FailureReports:
    """Tells the engine what ranks have written, whenever that has changed."""

    _session: Session
    _told: dict[RankId, tuple[object, float]] = field(default_factory=dict)

    async def follow(self, files: Callable[[], Iterable[tuple[RankId, Path]]]) -> None:
        """Look at these files again and again, until cancelled."""
        while True:
            for rank, file in files():
                self.look(rank, file)
            await anyio.sleep(FAILURE_POLL_INTERVAL_S)

    def look(self, rank: RankId, file: Path) -> None:
        """Read a rank's file, if there is one."""
        record = _read(file)
        if record is None:
            self._told.pop(rank, None)
            return
        now, until = time.time(), record.until
        before, at = self._told.get(rank, (None, 0.0))
        if record == before and (until is None or now - at < REMINDER_INTERVAL_S):
            return
        self._told[rank] = record, now
        left = None if until is None else max(0.0, until - now)
        self._session.driver.feed(inputs.RankFailed(rank, record.failure, left))


class _Failure(Struct, frozen=True):
    """What a rank has written. `until`: when it runs on, by the clock; None: not of itself."""

    failure: str
    until: float | None


def _read(file: Path) -> _Failure | None:
    with suppress(OSError, ValueError):
        return msgspec.json.decode(file.read_bytes(), type=_Failure)
    return None


# Announcing the session to the editor in whose terminal we run, so that it joins.
#
# The editor sets DAP_MUX_ANNOUNCE in its terminals to the path of a unix socket that only the
# user can access. We send one line of JSON: the session's address, its `name`, and the folder
# that it runs in (`cwd`). The token is not needed: the session's unix socket does not ask this
# user for it.

VARIABLE: Final = "DAP_MUX_ANNOUNCE"
ANNOUNCE_TIMEOUT_S: Final = 2.0  # a busy editor must not delay the job


async def announce(session: SessionFile, name: str) -> bool:
    """Announce the session, if in an editor's terminal. Whether that worked; never raises."""
    path = os.environ.get(VARIABLE)
    if not path:
        return False
    problem = _problem(Path(path)) or await _tell(path, session, name)
    if problem:
        # The editor may have been closed while its terminal lives on: not worth a warning.
        logger.info("%s: not announced to %s: %s", name, path, problem)
        return False
    say("announced the session to the editor of this terminal, which joins it")
    return True


def _problem(path: Path) -> str:
    """Return why this is not a socket that only the user can access, '' where it is."""
    try:
        status = path.lstat()
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISSOCK(status.st_mode):
        return "not a socket"
    if foreign(status) or stat.S_IMODE(status.st_mode) & 0o077:
        return "other users can access it"
    return ""


async def _tell(path: str, session: SessionFile, name: str) -> str:
    line = json.dumps({**session.public(), "name": name, "cwd": str(Path.cwd())}) + "\n"
    try:
        with anyio.fail_after(ANNOUNCE_TIMEOUT_S):
            async with await anyio.connect_unix(path) as editor:
                await editor.send(line.encode())
    except (OSError, TimeoutError, anyio.BrokenResourceError) as error:
        return str(error) or type(error).__name__
    return ""


# The first line of a program, where ranks stop for a console before anything runs.


def entry_line(command: tuple[str, ...]) -> dict[str, int]:
    """Return the file that a command runs and its first line with code; {} if unknown.

    `command` is a script and its arguments, or `-m`, a module and its arguments.
    """
    if not command:
        return {}
    path = _module_file(command[1]) if command[0] == "-m" else Path(command[0]).absolute()
    line = _first_line(path) if path else 0
    return {str(path): line} if line else {}


def rank_variables(options: JobOptions) -> dict[str, str]:
    """Return what tells ranks to record or to replay; "" sets none."""
    equal = json.dumps(options.comm_equal) if options.comm_equal else ""
    recorded = {COMM: options.comm, COMM_FILE: options.comm_file, STEP: options.comm_step}
    return {**recorded, EQUAL: equal, **options.variables}


def launched_program(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program that a launcher will run, for `entry_line`; () if unknown.

    That is the first `.py` file, or else the last `-m` (`python -m torch.distributed.run -m pkg`).
    """
    scripts = [each for each in command[1:] if each.endswith(".py") and Path(each).is_file()]
    if scripts:
        return (scripts[0],)
    options = [index for index, each in enumerate(command[:-1]) if each == "-m"]
    return command[options[-1] : options[-1] + 2] if options else ()


def _module_file(name: str) -> Path | None:
    """Search as Python does, but without importing parent packages."""
    relative = Path(*name.split("."))
    for folder in ("", *sys.path):
        for candidate in (relative.with_suffix(".py"), relative / "__main__.py"):
            path = Path(folder).absolute() / candidate
            if path.is_file():
                return path
    return None


def _first_line(path: Path) -> int:
    """Return the first line that can stop: a docstring and `from __future__` cannot."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return 0
    for statement in body:
        text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (text or future):
            decorators = getattr(statement, "decorator_list", [])
            return int((decorators or [statement])[0].lineno)
    return 0
