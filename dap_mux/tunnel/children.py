"""Runs external programs, once or continuously; none of them outlives us.

A child has a session of its own, so a Ctrl-C in our terminal does not reach it: ranks are released
through it. It has no standard input, so a program that asks for a password fails with a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import anyio

from dap_mux.errors import UsageError
from dap_mux.open_files import restore_limit

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


async def run_command(
    words: Sequence[str], *, env: Mapping[str, str] | None = None, within: float = COMMAND_TIMEOUT_S
) -> CommandResult:
    """Run a program to its end. Raises `UsageError` if it cannot be started or takes too long."""
    async with running_child(words, env=env) as process:
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
    env: Mapping[str, str] | None = None,
    one_stream: bool = False,
    with_input: bool = False,
) -> AsyncIterator[Process]:
    """Run a program until the block is left; `one_stream` puts its errors into its output.

    `with_input` gives it a standard input, to be written by the caller.
    `env` extends our own environment. Raises `UsageError` if it cannot be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if one_stream else subprocess.PIPE,
            env={**os.environ, **(env or {})},
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
