"""A console of plain lines: for pipes and scripts, and for `nc`."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from dap_mux.console.console import Console

BLOCK: Final = 64 * 1024
LONGEST: Final = 64 * 1024  # bytes of a line
NextLine: TypeAlias = "Callable[[], Coroutine[Any, Any, str | None]]"
"""Waits for a line; None is the end."""


class Lines:
    """Lines out of bytes that come in pieces; None is the end."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Take bytes; b"" is the end."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if (not data or len(self._rest) > LONGEST) and self._rest:
            whole, self._rest = [*whole, self._rest], b""
        for line in whole:
            self._lines.put_nowait(line.decode("utf-8", "replace").rstrip("\r"))
        if not data:
            self._lines.put_nowait(None)

    async def next(self) -> str | None:
        """Wait for a line; None is the end."""
        return await self._lines.get()


def lines_of_stdin() -> Lines:
    """Read standard input, which may be a file that an event loop cannot wait for.

    The thread dies with the process, and holds no lock of Python's own streams while it waits.
    """
    lines, loop = Lines(), asyncio.get_running_loop()

    def read() -> None:
        data = b"."
        while data:
            try:
                data = os.read(0, BLOCK)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(lines.feed, data)
            except RuntimeError:  # the loop is closed: nobody wants to know any more
                return

    threading.Thread(target=read, name="standard input", daemon=True).start()
    return lines


class Paper:
    """Writes for a `PlainScreen`, and keeps a prompt on a line of its own. `prompt` "": none."""

    def __init__(self, send: Callable[[str], object]) -> None:
        self._send = send
        self._prompt: Callable[[], str] = str
        self._shown = False

    def write(self, text: str) -> None:
        """Write whole lines; a prompt that stands there is shown again behind them."""
        if not self._shown:
            self._send(text)
            return
        self._shown = False
        self._send("\n" + text)
        asyncio.get_running_loop().call_soon(self._again)

    def ask(self, prompt: Callable[[], str]) -> None:
        """Show a prompt."""
        self._prompt = prompt
        self._show()

    def answered(self) -> None:
        """The user has typed a line behind the prompt."""
        self._shown = False
        self._prompt = str

    def _again(self) -> None:
        if not self._shown:
            self._show()

    def _show(self) -> None:
        if text := self._prompt():
            self._send(text)
            self._shown = True


async def converse(
    console: Console, next_line: NextLine, paper: Paper | None = None, *, first: str = ""
) -> None:
    """Do what the lines say until they end or the console does.

    `paper` is for prompts; `first` is a line that has come already.
    """
    over: asyncio.Task[Any] = asyncio.ensure_future(console.over.wait())
    try:
        await console.handle(first)
        while not console.over.is_set():
            if paper:
                paper.ask(lambda: console.prompt)
            line = await _either(next_line(), over)
            if paper:
                paper.answered()
            if line is None:
                break
            await console.handle(line)
            if console.failed and not paper:
                break  # the rest of a script relies on what has not come
        await console.leave()
    finally:
        over.cancel()


async def _either(line: Coroutine[Any, Any, str | None], over: asyncio.Task[Any]) -> str | None:
    """Return the next line, or None when the console is over before it comes."""
    coming = asyncio.ensure_future(line)
    try:
        both: set[asyncio.Task[Any]] = {coming, over}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return coming.result() if coming.done() else None
    finally:
        coming.cancel()
