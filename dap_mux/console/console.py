"""`Console`: one line in, lines and tables out. Where lines come from is somebody else's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, Final

from dap_mux.client import RequestFailed
from dap_mux.console.attached import Attached
from dap_mux.console.breakpoints import Breakpoints
from dap_mux.console.commands import COMMANDS
from dap_mux.console.link import Link
from dap_mux.console.picture import Row, id_of
from dap_mux.console.screen import Screen
from dap_mux.console.waiting import NotInTime
from dap_mux.console.words import lookup, split
from dap_mux.errors import DapMuxError
from dap_mux.rank_sets import RankId
from dap_mux.rank_sets.debuggees import DebuggeeId, rank_of

PROMPT: Final = "dap-mux> "
BANNER: Final = """\
**************************** DAP-MUX ****************************
Enter 'help' for a list of commands.
Enter 'list' to show all ranks that are stopped.
"""
PRINTED: Final = ("stdout", "stderr")


class Console:
    """A user's place in a session.

    `over` is set when it is time to leave. `on_change` is called when the prompt may have
    changed, `on_idle_interrupt` at a Ctrl-C while nothing is under way: True takes it. `prints`:
    whether what ranks print is shown here, or somebody else does that.
    """

    def __init__(self, link: Link, screen: Screen, *, prints: bool = True) -> None:
        self.link = link
        self.screen = screen
        self.attached: Attached | None = None
        self.last_output: dict[RankId, str] = {}
        self.names: list[tuple[str, str]] = []  # named sets, as last heard
        self.breakpoints = Breakpoints(link)
        self.over = asyncio.Event()
        self.failed = False  # a `wait` was in vain
        self.on_change: Callable[[], None] = lambda: None
        self.on_idle_interrupt: Callable[[], bool] = lambda: False
        self._prints = prints
        self._task: asyncio.Future[None] | None = None
        self._interrupted = False
        link.on_rows = self._rows_changed
        link.on_output = self._output

    @property
    def prompt(self) -> str:
        """What stands before the cursor."""
        return f"({self.attached.title}) " if self.attached else PROMPT

    @property
    def status(self) -> str:
        """One line about the session."""
        return f"{self.link.address}: {self.link.picture.counts() or 'no ranks yet'}"

    def greet(self) -> None:
        """Show the banner."""
        self.screen.say(BANNER, "title")
        self.screen.say(self.status, "quiet")

    # Lines

    async def handle(self, line: str) -> None:
        """Do what a line says; whatever goes wrong is told, and the console goes on."""
        if not line.strip() or self.over.is_set():
            return
        self._task, self._interrupted = asyncio.ensure_future(self._do(line.strip())), False
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            self.screen.say("interrupted; the ranks are as they are", "note")
        finally:
            self._task = None
            self._rows_changed([])

    def interrupt(self) -> bool:
        """End what the last line has started, as Ctrl-C does; ranks are left alone.

        False where nothing was under way, and it is not for the prompt either.
        """
        if self._task is not None and self._task.cancel():
            self._interrupted = True
            return True
        return self.on_idle_interrupt()

    async def _do(self, line: str) -> None:
        try:
            await self._dispatch(line)
        except NotInTime as error:
            self.failed = True
            self.screen.say(str(error), "error")
        except RequestFailed as error:
            self.screen.say(error.message, "error")
        except DapMuxError as error:
            self.screen.say(str(error), "error")
        except Exception as error:  # noqa: BLE001 - a sentence, and the session lives on
            self.screen.say(f"internal error: {type(error).__name__}: {error}", "error")

    async def _dispatch(self, line: str) -> None:
        if self.attached and not line.startswith("%"):
            await self.attached.do(line)
        else:
            word, rest = split(line.removeprefix("%"))
            await lookup(word, COMMANDS).run(self, rest)

    # A prompt on ranks

    async def attach(self, rows: list[Row]) -> None:
        """Go to the prompt on these ranks."""
        self.attached = Attached(self, [rank_of(id_of(row)) for row in rows])
        await self.attached.arrive()
        self.on_change()

    def detach(self, why: str = "") -> None:
        """Come back from there; the ranks stay as they are."""
        if self.attached:
            self.attached.say_goodbye(why)
            self.attached = None
            self.on_change()

    # Leaving

    async def leave(self) -> None:
        """Leave the session, and say what that means to the ranks."""
        self.detach()
        if self.over.is_set():
            return
        self.over.set()
        with contextlib.suppress(DapMuxError):
            released = await self.link.leave()
            self.screen.say(
                "you were the last debugger: every rank is released and runs on"
                if released
                else "left; other debuggers are still there, and no rank was resumed"
            )
        self.on_change()

    # What comes by itself

    def _rows_changed(self, changes: Iterable[tuple[Row | None, Row]]) -> None:
        own: set[DebuggeeId] = {*self.attached.busy_with} if self.attached else set()
        told = [change for change in changes if id_of(change[1]) not in own]
        for line in self.link.picture.news(told):
            self.screen.say(line, "note")
        if self.attached and self._task is None:
            self.attached.follow()
        if self.link.over.is_set() and not self.over.is_set():
            self.detach()
            self.screen.say(self.link.why_over, "note")
            self.over.set()
        self.on_change()

    def _output(self, body: dict[str, Any]) -> None:
        category = body.get("category", "console")
        if category == "telemetry" or (category in PRINTED and not self._prints):
            return
        self.screen.say(str(body["output"]).removesuffix("\n"))
