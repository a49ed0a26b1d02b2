"""A child process that keeps a tunnel open, restarted whenever it ends.

Whether the tunnel works is read from its output ("Forwarding from ..."), never tried by connecting:
a connection that is dropped before `attach` wedges a rank's adapter.
"""

from __future__ import annotations

import contextlib
import random
import re
import signal
from asyncio.subprocess import Process
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Final, Protocol, TypeAlias

import anyio

from dap_mux.backoff import Backoff
from dap_mux.printable import one_line
from dap_mux.tunnel.children import lines_of, running_child

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


class Supervised:
    """One child and its successors. `run` keeps the tunnel open until it is cancelled.

    `command` is awaited before each start: it may delay the start, and return other arguments than
    last time. `env` extends our own environment. Lines that match `chatter` do not explain why the
    child ended.
    """

    def __init__(
        self,
        command: Command,
        keeper: TunnelObserver,
        *,
        env: Mapping[str, str] | None = None,
        chatter: re.Pattern[str] | None = None,
    ) -> None:
        self._command = command
        self._keeper = keeper
        self._env = env
        self._chatter = chatter
        self._failures = 0
        self._open = False
        self._last: deque[str] = deque(maxlen=MAX_LAST_LINES)
        self.pid: int | None = None
        """Of the current child."""

    async def run(self) -> None:
        """Start the child, and restart it whenever it ends. Raises `UsageError` if that fails."""
        while True:
            words = await self._command()
            self._open = False
            self._last.clear()
            async with running_child(words, env=self._env, one_stream=True) as process:
                self.pid = process.pid
                how = await self._see_through(process)
            self.pid = None
            self._failures = 0 if self._open else self._failures + 1
            self._keeper.down(": ".join([f"{PurePath(words[0]).name} {how}", *self._last]))
            await anyio.sleep(pause_after(self._failures))

    async def _see_through(self, process: Process) -> str:
        """Read its output until it ends; return how it ended."""
        assert process.stdout
        with anyio.move_on_after(OPEN_TIMEOUT_S) as patience:
            async for line in lines_of(process.stdout):
                if self._keeper.said(line):
                    if not self._open:
                        self._open = True
                        patience.deadline = float("inf")
                        self._keeper.up()
                elif line.strip() and not (self._chatter and self._chatter.search(line)):
                    self._last.append(one_line(line.strip())[:MAX_LINE_SHOWN])
            return _how(await process.wait())
        return f"did not open a tunnel within {OPEN_TIMEOUT_S:g} s"


def pause_after(failures: int) -> float:
    """Return how long to wait after so many starts in a row that opened nothing."""
    return RESTARTS.delay(failures, random.random())  # noqa: S311  (it only spreads the starts)


def _how(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was terminated by {signal.Signals(-code).name}"
    return f"exited with code {code}"
