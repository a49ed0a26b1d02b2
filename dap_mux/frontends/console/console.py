"""`Console`: lines in, text and tables out, wherever the lines come from."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterable
from typing import Any, Final, Protocol

from dap_mux.client import RequestFailed
from dap_mux.frontends.console.breakpoints import Breakpoints
from dap_mux.frontends.console.commands import WaitFailed, lookup, split_command
from dap_mux.frontends.console.rank_prompt import RankPrompt
from dap_mux.frontends.console.screen import Screen
from dap_mux.frontends.console.session_client import SessionClient
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.rank_rows import Change, Row, id_of
from dap_mux.pure.rank_sets.world import DebuggeeId, rank_of

PROMPT: Final = "dap-mux> "
BANNER: Final = """\
**************************** DAP-MUX ****************************
Enter 'help' for a list of commands.
Enter 'list' to show all stopped ranks.
"""
RANK_OUTPUT: Final = ("stdout", "stderr")


class LineEditor(Protocol):
    """Where a user types lines for the console; it adds itself (`Console.edited_in`)."""

    @property
    def way_back(self) -> str:
        """The key that ends a command which does not end by itself: `Ctrl-C`."""

    def refresh(self) -> None:
        """The prompt may have changed, or the console has ended."""

    def discard_input(self) -> bool:
        """Handle a Ctrl-C while no command runs; return False where that is left to others."""


class Console:
    """A user's console in a session; it provides `Context` to the commands.

    `ended` is set when it is time to leave. `shows_output`: whether the console shows what ranks
    print.
    """

    def __init__(self, client: SessionClient, screen: Screen, *, shows_output: bool = True) -> None:
        self.client = client
        self.screen = screen
        self.attached: RankPrompt | None = None
        self.last_output: dict[RankId, str] = {}
        self.named_sets: list[tuple[str, str]] = []
        self.breakpoints = Breakpoints(client)
        self.ended = asyncio.Event()
        self.failed = False  # a `wait` has failed
        self.waits_long = False  # the user was told how to get the prompt back
        self._editor: LineEditor | None = None
        self._shows_output = shows_output
        self._task: asyncio.Task[Any] | None = None  # which runs a command
        self._interrupted = False
        self._lines = ("", "")  # the last two
        client.observe(self)

    def edited_in(self, editor: LineEditor) -> None:
        """Keep the prompt of this editor up to date."""
        self._editor = editor

    @property
    def prompt(self) -> str:
        """The text before the cursor."""
        return f"({self.attached.title}) " if self.attached else PROMPT

    @property
    def said_twice(self) -> bool:
        """Whether the line is the one before it again, or nobody is there to repeat it."""
        return self._editor is None or self._lines[0] == self._lines[1]

    @property
    def status(self) -> str:
        """One line about the session."""
        return f"{self.client.address}: {self.client.ranks.counts() or 'no ranks yet'}"

    def greet(self) -> None:
        """Show the banner."""
        self.screen.say(BANNER, "title")
        self.screen.say(self.status, "quiet")

    # Lines

    async def handle(self, line: str) -> None:
        """Run the command in a line; failures are shown, and the console goes on."""
        if not line.strip() or self.ended.is_set():
            return
        self._task, self._interrupted = asyncio.current_task(), False
        self._lines = self._lines[1], line.strip()
        try:
            await self._run(line.strip())
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            if sys.version_info >= (3, 11) and self._task is not None:
                self._task.uncancel()
            self.screen.say("interrupted; ranks are not affected", "note")
        finally:
            self._task, self.waits_long = None, False
            self.rows_changed([])

    def interrupt(self) -> bool:
        """Cancel the command that runs, as Ctrl-C does; ranks are not affected.

        Returns False if no command runs and the prompt does not handle it either.
        """
        if self._task is not None and self._task.cancel():
            self._interrupted = True
            return True
        return self._editor is not None and self._editor.discard_input()

    def blocked(self, who: str) -> None:
        """Say how the prompt comes back from a command that waits for ranks."""
        if self._editor is not None:
            way_back = self._editor.way_back
            self.waits_long = True
            text = f"{who} still run{'s' * who.startswith('rank ')}; {way_back} brings the prompt "
            self.screen.say(f"{text}back, and changes nothing there", "note")

    async def _run(self, line: str) -> None:
        try:
            await self._dispatch(line)
        except WaitFailed as error:
            self.failed = True
            self.screen.say(str(error), "error")
        except RequestFailed as error:
            self.screen.say(error.message, "error")
        except DapMuxError as error:
            self.screen.say(str(error), "error")
        except Exception as error:  # noqa: BLE001 - the console must survive its own faults
            self.screen.say(f"internal error: {type(error).__name__}: {error}", "error")

    async def _dispatch(self, line: str) -> None:
        if self.attached and not line.startswith("%"):
            await self.attached.handle(line)
        else:
            name, rest = split_command(line.removeprefix("%"))
            await lookup(name).run(self, rest)

    # The prompt on ranks

    async def attach(self, rows: list[Row]) -> None:
        """Open the prompt on these ranks."""
        self.attached = RankPrompt(self, [rank_of(id_of(row)) for row in rows])
        await self.attached.open()
        self._refresh()

    def detach(self, reason: str = "") -> None:
        """Close the prompt on ranks; they stay where they are."""
        if self.attached:
            self.attached.close(reason)
            self.attached = None
            self._refresh()

    # Leaving

    async def leave(self) -> None:
        """Disconnect from the session, and say what that means for the ranks."""
        self.detach()
        if self.ended.is_set():
            return
        self.ended.set()
        with contextlib.suppress(DapMuxError):
            released = await self.client.disconnect()
            self.screen.say(
                "you were the last debugger: all ranks are released and run on"
                if released
                else "disconnected; other debuggers are still connected, no rank was resumed"
            )
        self._refresh()

    # Events

    def rows_changed(self, changes: Iterable[Change]) -> None:
        """Announce stops and ends (`SessionObserver`)."""
        stepping: set[DebuggeeId] = {*self.attached.stepping} if self.attached else set()
        others = [change for change in changes if id_of(change[1]) not in stepping]
        for line in self.client.ranks.announcements(others):
            self.screen.say(line, "note")
        if self.attached and self._task is None:
            self.attached.follow()
        if self.client.ended.is_set() and not self.ended.is_set():
            self.detach()
            self.screen.say(self.client.end_reason, "note")
            self.ended.set()
        self._refresh()

    def output(self, body: dict[str, Any]) -> None:
        """Show what has been printed (`SessionObserver`)."""
        category = body.get("category", "console")
        if category == "telemetry" or (category in RANK_OUTPUT and not self._shows_output):
            return
        self.screen.say(str(body["output"]).removesuffix("\n"))

    def _refresh(self) -> None:
        if self._editor is not None:
            self._editor.refresh()
