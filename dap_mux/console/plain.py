"""A console of plain lines, for pipes, scripts and `nc`."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from dap_mux.console.console import Console

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
        self, send: Callable[[str], object], flush: Callable[[], object] = lambda: None
    ) -> None:
        """`flush` is called behind each prompt: the user waits for it, and nothing follows."""
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
        asyncio.get_running_loop().call_soon(self._repeat)

    def show(self, prompt: Callable[[], str]) -> None:
        """Show a prompt."""
        self._prompt = prompt
        self._show()

    def line_entered(self) -> None:
        """Note that the user has entered a line at the prompt."""
        self._shown = False
        self._prompt = str

    def _repeat(self) -> None:
        if not self._shown:
            self._show()

    def _show(self) -> None:
        if text := self._prompt():
            self._send(text)
            self._shown = True
            self._flush()


class TypedLines:
    """The lines that a person types: they are read on while a command runs.

    An empty one ends a command that waits for ranks, once the person was told so; all others are
    handled when it is over.
    """

    way_back = "an empty line"

    def __init__(self, console: Console, next_line: NextLine) -> None:
        self._console = console
        self._next_line = next_line
        self._reading: asyncio.Future[str | None] | None = None
        self._handling = False
        self._ahead: deque[str | None] = deque()
        console.edited_in(self)

    def refresh(self) -> None:
        """The prompt is written again by `PromptWriter`."""

    def discard_input(self) -> bool:
        """A line is edited at the other end."""
        return False

    async def next(self) -> str | None:
        """Wait for a line; None is the end."""
        if self._ahead:
            return self._ahead.popleft()
        try:
            return await self._read()
        except asyncio.CancelledError:
            self.end()
            raise

    async def handle(self, line: str) -> None:
        """Run a command, and take what is typed meanwhile."""
        self._handling = True
        self._read_ahead()
        try:
            await self._console.handle(line)
        finally:
            self._handling = False

    def _read_ahead(self) -> None:
        over = self._ahead and self._ahead[-1] is None
        if self._reading is None and not over and len(self._ahead) < MAX_LINES_AHEAD:
            self._reading = asyncio.ensure_future(self._next_line())
            self._reading.add_done_callback(self._arrived)

    def _arrived(self, reading: asyncio.Future[str | None]) -> None:
        """A line is there; `next` takes it unless a command runs."""
        if not self._handling or reading is not self._reading or reading.cancelled():
            return
        if reading.exception() is not None:
            self._console.interrupt()  # nobody is there any more: `next` raises it
            return
        self._reading = None
        line = reading.result()
        if line is not None and not line.strip() and self._console.waits_long:
            self._console.interrupt()
        else:
            self._ahead.append(line)
        self._read_ahead()

    async def _read(self) -> str | None:
        reading = self._reading or asyncio.ensure_future(self._next_line())
        self._reading = reading
        line = await reading
        self._reading = None
        return line

    def end(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()


async def converse(
    console: Console, next_line: NextLine, prompts: PromptWriter | None = None, *, first: str = ""
) -> None:
    """Handle lines until they, or the console, end.

    Without `prompts` the input is a script, which stops at a failed `wait`. `first` is a line
    that has been read already.
    """
    ended: asyncio.Task[Any] = asyncio.ensure_future(console.ended.wait())
    typed = TypedLines(console, next_line) if prompts else None
    take, handle = (typed.next, typed.handle) if typed else (next_line, console.handle)
    try:
        await handle(first)
        while not console.ended.is_set():
            if prompts:
                prompts.show(lambda: console.prompt)
            line = await _line_or_end(take(), ended)
            if prompts:
                prompts.line_entered()
            if line is None:
                break
            await handle(line)
            if console.failed and not prompts:
                break  # the rest of the script relies on the state it waited for
        await console.leave()
    finally:
        ended.cancel()
        if typed:
            typed.end()


async def _line_or_end(
    next_line: Coroutine[Any, Any, str | None], ended: asyncio.Task[Any]
) -> str | None:
    """Return the next line, or None if the console ends before it comes."""
    line = asyncio.ensure_future(next_line)

    def stop(_: object) -> None:
        line.cancel()

    ended.add_done_callback(stop)
    try:
        return await line
    except asyncio.CancelledError:
        if ended.done():
            return None
        raise
    finally:
        ended.remove_done_callback(stop)
