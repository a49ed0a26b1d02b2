"""Tunnels to ranks, and other external programs that we run: none of them outlives us.

A child has a session of its own, so a Ctrl-C in our terminal does not reach it: ranks are released
through it. It has no standard input, so a program that asks for a password fails with a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import random
import re
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Final, Protocol, TypeAlias

import anyio

from dap_mux.cluster.job import describe_exit
from dap_mux.pure.endpoint import Backoff
from dap_mux.pure.errors import UsageError
from dap_mux.pure.printable import one_line
from dap_mux.system.programs import restore_limit

STOP_GRACE_S: Final = 2.0  # to end when asked, before it is killed
COMMAND_TIMEOUT_S: Final = 30.0
MAX_LINE: Final = 16 * 1024 * 1024  # bytes; the description of a pod is one line


@dataclass(frozen=True)
class CommandResult:
    """A program's output and exit code; `code` is -n for signal n."""

    code: int
    out: str
    err: str

    @property
    def why(self) -> str:
        """The last line of its error output, for a message."""
        lines = (self.err or self.out).strip().splitlines()
        return lines[-1].strip() if lines else f"it exited with code {self.code}"


async def run_command(words: Sequence[str], *, within: float = COMMAND_TIMEOUT_S) -> CommandResult:
    """Run a program to its end. Raises `UsageError` if it cannot be started or takes too long."""
    async with running_child(words) as process:
        with anyio.move_on_after(within):
            out, err = await process.communicate()
            assert process.returncode is not None
            return CommandResult(
                process.returncode, out.decode(errors="replace"), err.decode("utf-8", "replace")
            )
    raise UsageError(f"{' '.join(words)}: no response within {within:g} s")


@asynccontextmanager
async def running_child(
    words: Sequence[str],
    *,
    one_stream: bool = False,
    with_input: bool = False,
) -> AsyncIterator[Process]:
    """Run a program until the block is left; `one_stream` puts its errors into its output.

    `with_input` gives it a standard input, to be written by the caller. Raises `UsageError` if it
    cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if one_stream else subprocess.PIPE,
            limit=MAX_LINE,
            start_new_session=True,
            preexec_fn=_ending_with_us(),
        )
    except OSError as error:
        raise UsageError(f"cannot start {words[0]}: {error.strerror}") from error
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)


async def lines_of(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield the lines of a stream until it ends; over if it is cancelled meanwhile."""
    while (line := await next_line(stream)) is not None:
        yield line


async def next_line(stream: asyncio.StreamReader) -> str | None:
    """Return the next line of a stream, None at its end; nothing is lost when it is cancelled."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:  # longer than any line of interest
            continue
        return line.decode(errors="replace").rstrip("\r\n") if line else None


async def _stop(process: Process) -> None:
    """End a child and its descendants: ask first, then kill."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with anyio.move_on_after(STOP_GRACE_S):
            await process.wait()
    for stream in (process.stdout, process.stderr):
        if stream:
            with anyio.move_on_after(STOP_GRACE_S):  # read to the end, so that the pipe gets closed
                await stream.read()


def _ending_with_us() -> Callable[[], None]:
    """Have Linux end the child if we are killed; other systems cannot.

    Between fork and exec only system calls run, looked up beforehand.
    """
    if sys.platform != "linux":
        return restore_limit
    prctl = ctypes.CDLL(None).prctl
    parent_death_signal, number, parent = 1, int(signal.SIGTERM), os.getpid()

    def tie() -> None:
        restore_limit()
        prctl(parent_death_signal, number, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return tie


# A child that keeps a tunnel open, restarted whenever it ends.
#
# Whether the tunnel works is read from its output ("Forwarding from ..."), never tried by
# connecting: a connection that is dropped before `attach` wedges a rank's adapter.

RESTARTS: Final = Backoff(first=0.25, longest=10.0)  # after starts that opened nothing
OPEN_TIMEOUT_S: Final = 20.0  # a login or a slow server may take a while
MAX_LAST_LINES: Final = 2  # kept to explain why it ended
MAX_LINE_SHOWN: Final = 200  # characters

Command: TypeAlias = Callable[[], Awaitable[Sequence[str]]]


class TunnelObserver(Protocol):
    """Interprets the child's output, and learns of the tunnel's state."""

    def said(self, line: str) -> bool:
        """Handle a line of output. Whether the tunnel is open from now on."""

    def up(self) -> None:
        """The tunnel is open."""

    def down(self, why: str) -> None:
        """The tunnel has closed, or failed to open; it will be retried."""


@dataclass(eq=False)
class Supervised:
    """One child and its successors. `run` keeps the tunnel open until it is cancelled.

    `command` is awaited before each start: it may delay the start, and return other arguments than
    last time. Lines that match `chatter` do not explain why the child ended.
    """

    command: Command
    keeper: TunnelObserver
    _: KW_ONLY
    chatter: re.Pattern[str] | None = None
    pid: int | None = None
    """Of the current child."""
    _failures: int = 0
    _open: bool = False
    _last: deque[str] = field(default_factory=partial(deque, maxlen=MAX_LAST_LINES))

    async def run(self) -> None:
        """Start the child, and restart it whenever it ends. Raises `UsageError` if that fails."""
        while True:
            words = await self.command()
            self._open = False
            self._last.clear()
            async with running_child(words, one_stream=True) as process:
                self.pid = process.pid
                how = await self._see_through(process)
            self.pid = None
            self._failures = 0 if self._open else self._failures + 1
            self.keeper.down(": ".join([f"{PurePath(words[0]).name} {how}", *self._last]))
            await anyio.sleep(pause_after(self._failures))

    async def _see_through(self, process: Process) -> str:
        """Read its output until it ends; return how it ended."""
        assert process.stdout
        with anyio.move_on_after(OPEN_TIMEOUT_S) as patience:
            async for line in lines_of(process.stdout):
                if self.keeper.said(line):
                    if not self._open:
                        self._open = True
                        patience.deadline = float("inf")
                        self.keeper.up()
                elif line.strip() and not (self.chatter and self.chatter.search(line)):
                    self._last.append(one_line(line.strip())[:MAX_LINE_SHOWN])
            return _how(await process.wait())
        return f"did not open a tunnel within {OPEN_TIMEOUT_S:g} s"


def pause_after(failures: int) -> float:
    """Return how long to wait after so many starts in a row that opened nothing."""
    return RESTARTS.delay(failures, random.random())  # noqa: S311  (it only spreads the starts)


def _how(code: int) -> str:
    return describe_exit(code) if code < 0 else f"exited with code {code}"
