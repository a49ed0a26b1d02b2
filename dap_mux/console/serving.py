"""The plain console for `nc`: each connection from this user is a debugger of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from dap_mux.console.console import Console
from dap_mux.console.link import Link
from dap_mux.console.plain import LONGEST, Paper, converse
from dap_mux.console.screen import PlainScreen
from dap_mux.errors import DapMuxError

logger = logging.getLogger("dap_mux.console")
FOREIGN: Final = re.compile(r"\x16|.*\bHTTP/\d|(?:host|origin):", re.IGNORECASE)  # promise S6
FIRST_LOOK: Final = 0.2  # s in which who is no person has said so; they speak first
Door = Callable[[], Awaitable[Link]]
"""Joins the session once more."""


async def serve(
    host: str, port: int, door: Door, trusts: Callable[[socket.socket], bool]
) -> asyncio.Server:
    """Listen; `trusts` says whether the peer of a connection may come in.

    Raises OSError where the port is taken.
    """
    return await asyncio.start_server(
        lambda reader, writer: _welcome(reader, writer, door, trusts), host, port, limit=LONGEST
    )


async def _welcome(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    door: Door,
    trusts: Callable[[socket.socket], bool],
) -> None:
    """See one connection through: whatever happens to it is nobody else's trouble."""
    try:
        if not trusts(writer.get_extra_info("socket")):
            logger.warning("refused a console to another user")
            return
        await _talk(reader, writer, door)
    except (OSError, ValueError, DapMuxError) as error:
        logger.info("a console ended: %s", error)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, door: Door) -> None:
    lines = _Lines(reader)
    if await lines.foreign_at_once():
        return
    pieces = _InOnePiece(writer)
    paper = Paper(pieces.write)
    try:
        link = await door()
    except DapMuxError as error:
        writer.write(f"{error}\n".encode())
        return
    try:
        await converse(Console(link, PlainScreen(paper.write)), lines.next, paper)
    finally:
        pieces.flush()
        await link.close()


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
        """Write what there is."""
        if self._pieces:
            text, self._pieces = "".join(self._pieces), []
            self._writer.write(text.encode())


class _Lines:
    """What a connection types. The first line tells a browser, before it joins anything."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._first: asyncio.Task[str | None] | None = asyncio.ensure_future(self._read())

    async def foreign_at_once(self) -> bool:
        """Look for a moment who has come."""
        assert self._first is not None
        await asyncio.wait({self._first}, timeout=FIRST_LOOK)
        return self._first.done() and _foreign(self._first.result())

    async def next(self) -> str | None:
        """Wait for a line; None is the end, and for who is no person it is at once."""
        if self._first is None:
            return await self._read()
        line = await asyncio.shield(self._first)
        self._first = None
        return None if _foreign(line) else line

    async def _read(self) -> str | None:
        try:
            line = await self._reader.readline()
        except ValueError:  # longer than any command
            return None
        return line.decode("utf-8", "replace").rstrip("\r\n") if line else None


def _foreign(line: str | None) -> bool:
    foreign = line is not None and FOREIGN.match(line) is not None
    if foreign:
        logger.warning("closed a console: that is no person")
    return foreign
