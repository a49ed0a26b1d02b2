"""The plain console for `nc`: each connection of this user is a debugger of its own."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import Final, TypeAlias

from dap_mux.frontends.console.commands import lookup, split_command
from dap_mux.frontends.console.console import BANNER, PROMPT, Console
from dap_mux.frontends.console.plain import BLOCK_SIZE, MAX_LINE_BYTES, PromptWriter, converse
from dap_mux.frontends.console.screen import PlainScreen
from dap_mux.frontends.console.session_client import SessionClient
from dap_mux.pure.errors import DapMuxError, UsageError

logger = logging.getLogger("dap_mux.console")
NOT_TYPED: Final = re.compile(rb"[^\t\r\n\x1b\x20-\x7e\x80-\xff]")  # bytes no terminal sends
HEADER: Final = re.compile(r".*\bHTTP/\d|[a-z]+(?:-[a-z]+)*:", re.IGNORECASE)
Join: TypeAlias = Callable[[str], Awaitable[SessionClient]]
"""Joins the session with a new client, whose first command has this name."""
Watch: TypeAlias = Callable[[asyncio.StreamWriter], AbstractContextManager[None]]


@asynccontextmanager
async def served(
    address: tuple[str, int],
    join: Join,
    trusts: Callable[[socket.socket], bool],
    watch: Watch,
    words: str,
) -> AsyncIterator[int]:
    """Serve consoles within the block, and return the port; then close all connections.

    `trusts` decides whether the peer of a connection may have a console; `watch` ends a connection
    whose peer is gone without a word: it would hold ranks for good.

    Raises DapMuxError if the port is taken.
    """
    has_refused = False
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Check the peer before a byte is read."""
        nonlocal has_refused
        if not trusts(writer.get_extra_info("socket")):
            # Once: whoever wants to fill the log can come again and again.
            logger.log(
                logging.INFO if has_refused else logging.WARNING,
                "refused a console to another user, or to a peer that closed the connection "
                "before its user could be determined",
            )
            has_refused = True
            writer.close()
            return
        task = asyncio.ensure_future(_serve(reader, writer, join, watch, words))
        connections.add(task)
        task.add_done_callback(connections.discard)

    try:
        server = await asyncio.start_server(accept, *address)
    except OSError as error:
        host, port = address
        raise DapMuxError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in connections:  # even those that have not joined yet
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, join: Join, watch: Watch, words: str
) -> None:
    """Serve one connection to its end; its failures must not affect the others."""
    try:
        with watch(writer):
            await _run_console(reader, writer, join, words)
    except _NotTyped:
        logger.warning("closed a console connection: its input was not typed by a person")
    except (OSError, ValueError, DapMuxError) as error:
        logger.info("a console ended: %s", error)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


# Joining a session affects its ranks, and so does leaving it. A connection therefore joins with its
# first whole line, and only if that is a command; until then it only has a prompt. A connection
# that sends what a person would not type is closed.
async def _run_console(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, join: Join, words: str
) -> None:
    output = _BufferedWriter(writer)
    prompts = PromptWriter(output.write, output.flush)
    lines = _LineReader(reader)
    screen = PlainScreen(prompts.write)
    screen.say(BANNER)
    first = await _first_command(lines, screen, prompts)
    if first is None:
        return
    name, command = first
    try:
        client = await join(name)
    except DapMuxError as error:
        screen.say(str(error))
        output.flush()
        return
    try:
        console = Console(client, screen, words=words)
        screen.say(console.status)
        await converse(console, lines.next, prompts, first=command)
    finally:
        output.flush()
        await client.close()


async def _first_command(
    lines: _LineReader, screen: PlainScreen, prompts: PromptWriter
) -> tuple[str, str] | None:
    """Prompt until a command is entered; return its name and its line.

    None if the connection ends before.

    Raises _NotTyped.
    """
    while True:
        prompts.show(lambda: PROMPT)
        line = await lines.first()
        prompts.line_entered()
        if line is None:
            return None
        if HEADER.match(line):
            raise _NotTyped
        typed, _ = split_command(line.removeprefix("%"))
        try:
            name = lookup(typed).name if typed else ""
        except UsageError as error:
            screen.say(str(error))
        else:
            if name:
                return (name, line) if name != "quit" else None


class _BufferedWriter:
    """Sends a response together with the prompt that follows it, which flushes.

    Each write wakes the reader, which costs more than the rest of a short response.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        """Write at the next flush, and in two turns of the loop where none comes before."""
        if not self._pieces:
            call_soon = asyncio.get_running_loop().call_soon
            call_soon(call_soon, self.flush)
        self._pieces.append(text)

    def flush(self) -> None:
        """Write the buffer; it is dropped if the connection is closing."""
        text, self._pieces = "".join(self._pieces), []
        if text and not self._writer.is_closing():
            self._writer.write(text.encode())


class _NotTyped(Exception):
    """The input is nothing that a person types."""


class _LineReader:
    """The lines of a connection."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._rest = b""

    async def first(self) -> str | None:
        """Wait for a whole line. Raises _NotTyped at the first bytes that no terminal sends."""
        while b"\n" not in self._rest:
            data = await self._read()
            if NOT_TYPED.search(data):
                raise _NotTyped
            if not data:
                return None
        return self._take()

    async def next(self) -> str | None:
        """Wait for a line; None at the end, or if a line is too long."""
        while b"\n" not in self._rest:
            if not await self._read():
                break
        return self._take() if self._rest else None

    async def _read(self) -> bytes:
        """Read more; b"" at the end, or if a line is too long."""
        data = await self._reader.read(BLOCK_SIZE)
        too_long = len(self._rest) + len(data) > MAX_LINE_BYTES and b"\n" not in data
        self._rest = b"" if too_long else self._rest + data
        return b"" if too_long else data

    def _take(self) -> str:
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")
