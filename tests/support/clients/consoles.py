"""Consoles as tests use them: by pipe, line by line, and inside the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dap_mux.frontends.console.console import Console
from dap_mux.frontends.console.screen import PlainScreen
from dap_mux.frontends.console.session_client import BreakpointsByPath, SessionClient
from tests.support.processes.commands import LIMIT, Command, User
from tests.support.processes.run_command import run_words
from tests.support.session import Session


class PipedConsole:
    """`dap-mux console` at the other end of two pipes."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._read_errors = 0  # characters of what went to standard error
        self.said = ""

    async def does(self, line: str) -> str:
        """Type a line; return what was shown until it was done, and then what went wrong.

        Lines are done one after another, so the answer to one that every console can answer marks
        the end of what was typed before it.
        """
        self.type(line, "%help quit")
        said = await self.until("quit: leave;")
        errors = self._command.err[self._read_errors :]
        self._read_errors += len(errors)
        return "".join(said.splitlines(keepends=True)[:-1]) + errors

    def type(self, *lines: str) -> None:
        """Type lines, and wait for nothing."""
        stdin = self._command.process.stdin
        assert stdin is not None
        stdin.write("".join(f"{line}\n" for line in lines).encode())

    async def until(self, words: str) -> str:
        """Read on until these words were shown; return all since the last time."""
        said = ""
        while words not in said:
            said += await self._read(words)
        return said

    async def sees(self, words: str) -> str:
        """Wait for words that come by themselves, or have come already."""
        while words not in self.said:
            await self._read(words)
        return self.said

    async def _read(self, words: str) -> str:
        stdout = self._command.process.stdout
        assert stdout is not None
        line = (await asyncio.wait_for(stdout.readline(), LIMIT)).decode()
        assert line, f"ended before {words!r}: {self.said}{self._command.err}"
        self.said += line
        return line


async def console_of_job(user: User, *words: str, n: int) -> tuple[Command, PipedConsole]:
    """`run --console` by pipe, whose ranks all stand at their first line."""
    run = await user.start(*run_words("--console", *words, n=n), piped=True)
    console = PipedConsole(run)
    while f"{n} stopped" not in await console.does("list"):
        await console.sees("stopped at")
    return run, console


@asynccontextmanager
async def console_of(
    session: Session, breakpoints: BreakpointsByPath
) -> AsyncIterator[tuple[Console, list[str]]]:
    """A console inside the test, and what it has shown."""
    shown: list[str] = []
    client = SessionClient(await session.client("dap-mux console"), f"127.0.0.1:{session.port}")
    await client.attach(breakpoints, {})
    console = Console(client, PlainScreen(shown.append), words="monarch")
    try:
        yield console, shown
    finally:
        await client.close()


def cells(text: str) -> list[list[str]]:
    """The rows of a table with Monarch's lines, its head first."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
