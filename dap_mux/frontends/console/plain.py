"""A console of plain lines, for pipes, scripts and `nc`."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, TypeAlias

from dap_mux.frontends.console.console import Console
from dap_mux.frontends.console.screen import PlainScreen

BLOCK_SIZE: Final = 64 * 1024
MAX_LINE_BYTES: Final = 64 * 1024
MAX_LINES_AHEAD: Final = 1000
"""Lines that are kept while a command runs; what is sent beyond them waits in the connection."""
NextLine: TypeAlias = "Callable[[], Coroutine[Any, Any, str | None]]"
"""Waits for a line; None is the end."""


class LineQueue:
    """Splits bytes that arrive in chunks into lines; None is the end."""

    def __init__(self) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Add bytes; b"" is the end."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if (not data or len(self._rest) > MAX_LINE_BYTES) and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._lines.put_nowait(line.decode("utf-8", "replace").rstrip("\r"))
        if not data:
            self._lines.put_nowait(None)

    async def next(self) -> str | None:
        """Wait for a line; None is the end."""
        return await self._lines.get()


def read_stdin() -> LineQueue:
    """Read standard input in a thread, because it may be a file that an event loop cannot poll.

    The thread is a daemon, and holds no lock of Python's own streams while it reads.
    """
    lines, loop = LineQueue(), asyncio.get_running_loop()

    def read() -> None:
        data = b"."
        while data:
            try:
                data = os.read(0, BLOCK_SIZE)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(lines.feed, data)
            except RuntimeError:  # the loop is closed
                return

    threading.Thread(target=read, name="standard input", daemon=True).start()
    return lines


class PromptWriter:
    """Writes text for a `PlainScreen`, and keeps the prompt on a line of its own after it."""

    def __init__(
        self,
        send: Callable[[str], object],
        flush: Callable[[], object] = lambda: None,
        *,
        of_terminal: bool = False,
    ) -> None:
        """`flush` is called behind each prompt: the user waits for it, and nothing follows.

        `of_terminal`: of this process's, where Ctrl-C interrupts.
        """
        self.of_terminal = of_terminal
        self._send = send
        self._flush = flush
        self._prompt: Callable[[], str] = str  # "": no prompt
        self._shown = False

    def write(self, text: str) -> None:
        """Write whole lines; a prompt that is shown is repeated after them."""
        if not self._shown:
            self._send(text)
            return
        self._shown = False
        self._send("\n" + text)
        asyncio.get_running_loop().call_soon(self._show)

    def show(self, prompt: Callable[[], str]) -> None:
        """Show a prompt."""
        self._prompt = prompt
        self._show()

    def line_entered(self) -> None:
        """Note that the user has entered a line at the prompt."""
        self._shown = False
        self._prompt = str

    def _show(self) -> None:
        if not self._shown and (text := self._prompt()):
            self._send(text)
            self._shown = True
            self._flush()


def dumb_terminal(console: Console) -> PromptWriter:
    """Have a console write to a terminal that has no cursor movement; return its prompts."""
    prompts = PromptWriter(sys.stdout.write, sys.stdout.flush, of_terminal=True)
    console.screen = PlainScreen(prompts.write)
    return prompts


class TypedLines:
    """The lines that a person types: they are read on while a command runs.

    An empty one ends a command that waits for ranks, once the person was told so; all others are
    handled when it is over.
    """

    way_back = "an empty line"

    def __init__(self, console: Console, next_line: NextLine) -> None:
        self._console = console
        self._ahead: asyncio.Queue[str | BaseException | None] = asyncio.Queue(MAX_LINES_AHEAD)
        self._reading = asyncio.ensure_future(self._read(next_line))
        console.edited_in(self)

    def refresh(self) -> None:
        """The prompt is written again by `PromptWriter`; no line is waited for at the end."""
        if self._console.ended.is_set() and self._ahead.empty():
            self._ahead.put_nowait(None)

    def discard_input(self) -> bool:
        """Take a Ctrl-C of a terminal that edits the line, and has dropped it, for a line."""
        with suppress(asyncio.QueueFull):
            self._ahead.put_nowait(KeyboardInterrupt())
        return True

    async def next(self) -> str | None:
        """Wait for a line; None is the end of them, or of the console."""
        line = await self._ahead.get()
        if isinstance(line, BaseException):
            raise line
        return line

    def drop(self) -> None:
        """Forget what was typed ahead: it could move ranks."""
        while not self._ahead.empty():
            self._ahead.get_nowait()

    def end(self) -> None:
        """Read no more."""
        self._reading.cancel()

    async def _read(self, next_line: NextLine) -> None:
        line: str | None = ""
        while line is not None:
            try:
                line = await next_line()
            except Exception as error:  # noqa: BLE001  (`next` raises it)
                self._console.interrupt()  # nobody is there any more
                await self._ahead.put(error)
                return
            if self._console.waits_long and line is not None and not line.strip():
                self._console.interrupt()
            else:
                await self._ahead.put(line)


async def converse(
    console: Console, next_line: NextLine, prompts: PromptWriter | None = None, *, first: str = ""
) -> None:
    """Handle lines until they, or the console, end.

    Without `prompts` the input is a script. `first` is a line that has been read already.
    """
    if prompts is None:
        await _follow(console, next_line, first)
    else:
        await _answer(console, next_line, prompts, first)
    await console.leave()


async def _answer(console: Console, next_line: NextLine, prompts: PromptWriter, first: str) -> None:
    """Handle what a person types."""
    typed = TypedLines(console, next_line)
    try:
        await console.handle(first)
        while not console.ended.is_set():
            prompts.show(lambda: console.prompt)
            try:
                line = await typed.next()
            except KeyboardInterrupt:
                line = ""
                await console.key_interrupt()
            prompts.line_entered()
            if line is None:
                break
            interrupts = console.interrupts
            await console.handle(line)
            if prompts.of_terminal and console.interrupts != interrupts:
                typed.drop()
    finally:
        typed.end()


async def _follow(console: Console, next_line: NextLine, first: str) -> None:
    """Handle the lines of a script, all of them: to leave after a failed `wait` releases ranks."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(console.ended.wait())]
    try:
        await console.handle(first)
        while not console.ended.is_set():
            line = asyncio.ensure_future(next_line())
            waits[1:] = [line]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not line.done() or (text := line.result()) is None:
                break
            await console.handle(text)
    finally:
        for each in waits:
            each.cancel()
