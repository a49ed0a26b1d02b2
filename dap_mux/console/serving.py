"""The plain console for `nc`: each connection from this user is a debugger of its own.

Joining a session has consequences for its ranks, and so has leaving it. A connection therefore
joins at its first whole line, and only if that is a command: until then it has a prompt, and
whatever no person types ends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from dap_mux.console.commands import COMMANDS
from dap_mux.console.console import BANNER, PROMPT, Console
from dap_mux.console.link import Link
from dap_mux.console.plain import BLOCK, LONGEST, Paper, converse
from dap_mux.console.screen import PlainScreen
from dap_mux.console.words import lookup, split
from dap_mux.errors import DapMuxError, UsageError

logger = logging.getLogger("dap_mux.console")
NO_TEXT: Final = re.compile(rb"[^\t\r\n\x1b\x20-\x7e\x80-\xff]")  # what no terminal sends
HEADER: Final = re.compile(r".*\bHTTP/\d|[a-z]+(?:-[a-z]+)*:", re.IGNORECASE)
Door = Callable[[], Awaitable[Link]]
"""Joins the session once more."""


class Server:
    """Serves consoles on one port until it is closed."""

    def __init__(self, door: Door, trusts: Callable[[socket.socket], bool]) -> None:
        self._door = door
        self._trusts = trusts
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> None:
        """Raises OSError where the port is taken."""
        self._server = await asyncio.start_server(self._accept, host, port)

    @property
    def port(self) -> int:
        """The port that it has."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Hang up on everybody, also on those who have typed nothing yet."""
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Decide who that is before a byte is heard."""
        trusted = self._trusts(writer.get_extra_info("socket"))
        task = asyncio.ensure_future(self._welcome(reader, writer, trusted=trusted))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _welcome(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, trusted: bool
    ) -> None:
        """See one connection through: whatever happens to it is nobody else's trouble."""
        try:
            if trusted:
                await _talk(reader, writer, self._door)
            else:
                logger.warning(
                    "refused a console to another user, or to one who hung up before it was known"
                )
        except _NoPerson:
            logger.warning("closed a console: that is no person")
        except (OSError, ValueError, DapMuxError) as error:
            logger.info("a console ended: %s", error)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def serve(
    host: str, port: int, door: Door, trusts: Callable[[socket.socket], bool]
) -> Server:
    """Listen; `trusts` says whether the peer of a connection may come in.

    Raises OSError where the port is taken.
    """
    server = Server(door, trusts)
    await server.listen(host, port)
    return server


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, door: Door) -> None:
    pieces = _InOnePiece(writer)
    paper = Paper(pieces.write)
    lines = _Typed(reader)
    screen = PlainScreen(paper.write)
    screen.say(BANNER)
    command = await _first_command(lines, screen, paper)
    if command is None:
        return
    try:
        link = await door()
    except DapMuxError as error:
        screen.say(str(error))
        pieces.flush()
        return
    try:
        console = Console(link, screen)
        screen.say(console.status)
        await converse(console, lines.next, paper, first=command)
    finally:
        pieces.flush()
        await link.close()


async def _first_command(lines: _Typed, screen: PlainScreen, paper: Paper) -> str | None:
    """Prompt until a command comes; None where the connection ends before.

    Raises _NoPerson.
    """
    while True:
        paper.ask(lambda: PROMPT)
        line = await lines.first()
        paper.answered()
        if line is None:
            return None
        if HEADER.match(line):
            raise _NoPerson
        word, _ = split(line.removeprefix("%"))
        try:
            name = lookup(word, COMMANDS).name if word else ""
        except UsageError as error:
            screen.say(str(error))
        else:
            if name:
                return line if name != "quit" else None


class _InOnePiece:
    """Writes an answer with the prompt behind it, which comes a turn of the loop later, at once.

    Each write wakes who reads it, which costs more than all that a short answer takes.
    """

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        """Write two turns of the loop later, with what comes until then."""
        if not self._pieces:
            call_soon = asyncio.get_running_loop().call_soon
            call_soon(call_soon, self.flush)
        self._pieces.append(text)

    def flush(self) -> None:
        """Write what there is; a peer that has hung up gets nothing."""
        text, self._pieces = "".join(self._pieces), []
        if text and not self._writer.is_closing():
            self._writer.write(text.encode())


class _NoPerson(Exception):
    """What came is nothing that a person types."""


class _Typed:
    """The lines that a connection types."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._rest = b""

    async def first(self) -> str | None:
        """Wait for a whole line. Raises _NoPerson at the first bytes that no person types."""
        while b"\n" not in self._rest:
            data = await self._read()
            if NO_TEXT.search(data):
                raise _NoPerson
            if not data:
                return None
        return self._take()

    async def next(self) -> str | None:
        """Wait for a line; None is the end, also that of one longer than any command."""
        while b"\n" not in self._rest:
            if not await self._read():
                break
        return self._take() if self._rest else None

    async def _read(self) -> bytes:
        """Wait for more; nothing at the end, or when a line does not end."""
        data = await self._reader.read(BLOCK)
        too_long = len(self._rest) + len(data) > LONGEST and b"\n" not in data
        self._rest = b"" if too_long else self._rest + data
        return b"" if too_long else data

    def _take(self) -> str:
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")
