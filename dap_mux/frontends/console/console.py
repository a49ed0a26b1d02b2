"""`Console`: lines in, text and tables out, wherever the lines come from."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from dap_mux.client import RequestFailed
from dap_mux.frontends.console.breakpoints import WORDS as BREAKPOINT_WORDS
from dap_mux.frontends.console.breakpoints import Breakpoints
from dap_mux.frontends.console.commands import find, lookup, split_command
from dap_mux.frontends.console.current_set import CurrentSet
from dap_mux.frontends.console.rank_prompt import RankPrompt
from dap_mux.frontends.console.screen import Screen
from dap_mux.frontends.console.session_client import SessionClient, describe_event, settled
from dap_mux.pure.errors import DapMuxError, UsageError
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.rank_rows import Change, Row, id_of
from dap_mux.pure.rank_sets.world import DebuggeeId, rank_of
from dap_mux.system.user_files import open_regular

PROMPT: Final = "dap-mux> "
BANNER: Final = """\
**************************** DAP-MUX ****************************
Enter 'help' for a list of commands.
Enter 'list' to show all stopped ranks.
"""
RANK_OUTPUT: Final = ("stdout", "stderr")
MONARCH: Final = "monarch"
"""The words with which `c`, `l` and `attach` mean what they mean in Monarch's debugger."""
PDB_WORDS: Final = frozenset("a c cont continue l".split())
"""pdb's words that are Monarch's, too, for something else; `a RANK` is not pdb's."""
MAX_SOURCES: Final = 16
TWICE_S: Final = 1.0
"""Two Ctrl-C within this time pause the set."""


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
    print. `words`: "pdb", or "monarch".
    """

    def __init__(
        self,
        client: SessionClient,
        screen: Screen,
        *,
        shows_output: bool = True,
        words: str = "pdb",
    ) -> None:
        self.client = client
        self.screen = screen
        self.attached: RankPrompt | None = None
        self.set = None if words == MONARCH else CurrentSet(self)
        self.last_output: dict[RankId, str] = {}
        self.named_sets: list[tuple[str, str]] = []
        self.breakpoints = Breakpoints(client)
        self.ended = asyncio.Event()
        self.was_last = False  # no debugger was left when the user left
        self.failed = False  # a line of a script has
        self.waits_long = False  # the user was told how to get the prompt back
        self._editor: LineEditor | None = None
        self._shows_output = shows_output
        self._task: asyncio.Task[Any] | None = None  # which runs a command
        self._interrupted = False
        self._lines = ("", "")  # the last two
        self.interrupts = 0  # ever; what was typed ahead ends with one
        self._interrupted_at = -TWICE_S
        self._asks_to_leave = False
        self._sources = 0  # files that run now
        self._said: set[asyncio.Task[None]] = set()
        client.on_change.append(self.rows_changed)
        client.on_output.append(self.output)

    def edited_in(self, editor: LineEditor) -> None:
        """Keep the prompt of this editor up to date."""
        self._editor = editor

    @property
    def prompt(self) -> str:
        """The text before the cursor."""
        if self._asks_to_leave:
            count = len(self._stopped())
            who = f"{count} rank{'s are' if count > 1 else ' is'} stopped"
            return f"{who}: let all ranks run on and leave? [y/N] "
        if self.set is not None:
            return self.set.prompt
        return f"({self.attached.title}) " if self.attached else PROMPT

    @property
    def target(self) -> tuple[str, list[Row]]:
        """The ranks that plain lines go to, and their rows."""
        if self.set is not None:
            return self.set.text, self.set.rows()
        return (
            self.attached.target if self.attached else ("all", [*self.client.ranks.rows.values()])
        )

    @property
    def is_held(self) -> bool:
        """Whether an exception holds a rank of the current set."""
        return self.set is not None and self.set.is_held

    @property
    def said_twice(self) -> bool:
        """Whether the line is the one before it again, or nobody is there to repeat it."""
        return self._editor is None or self._lines[0] == self._lines[1]

    @property
    def status(self) -> str:
        """One line about the session."""
        agent = f"; agent: {self.client.agent}" if self.client.agent else ""
        return f"{self.client.address}: {self.client.ranks.counts() or 'no ranks yet'}{agent}"

    def greet(self) -> None:
        """Show the banner."""
        self.screen.say(BANNER, "title")
        self.screen.say(self.status, "quiet")

    # Lines

    async def handle(self, line: str) -> None:
        """Run the command in a line; failures are shown, and the console goes on.

        Text of several lines, as it is pasted, is a command a line; an interrupt drops the rest.
        """
        interrupts = self.interrupts
        for one in line.replace("\r", "\n").split("\n"):
            if self.interrupts == interrupts:
                await self._handle(one)

    async def _handle(self, line: str) -> None:
        if self._asks_to_leave:
            self._asks_to_leave = False
            if line.strip().lower() in ("y", "yes"):
                await self.leave()
            return
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
            self._say_interrupted()
        finally:
            self._task, self.waits_long = None, False
            self.rows_changed([])

    def interrupt(self) -> bool:
        """Cancel the command that runs, as Ctrl-C does; ranks are not affected.

        Returns False if no command runs and the prompt does not handle it either.
        """
        self.interrupts += 1
        if self._task is not None and self._task.cancel():
            self._interrupted = True
            self._interrupted_at = time.monotonic()
            return True
        return self._editor is not None and self._editor.discard_input()

    async def key_interrupt(self) -> None:
        """Handle Ctrl-C at the prompt: the second within a second pauses the set."""
        self._asks_to_leave = False
        before, self._interrupted_at = self._interrupted_at, time.monotonic()
        if self.set is not None and self._interrupted_at - before < TWICE_S and self.set.running():
            await self._handle(f"%pause {self.set.text}")

    def _say_interrupted(self) -> None:
        run = self.set.running() if self.set is not None else []
        if not run:
            self.screen.say("interrupted; ranks are not affected", "note")
            return
        name = self.client.ranks.fold(map(id_of, run))
        text = f"{name} still run{'s' * (len(run) == 1)}"
        self.screen.say(f"{text}: 'pause {name}' stops {'it' if len(run) == 1 else 'them'}", "note")

    def blocked(self, who: str) -> None:
        """Say how the prompt comes back from a command that waits for ranks."""
        if self._editor is not None:
            way_back = self._editor.way_back
            self.waits_long = True
            text = f"{who} still run{'s' * who.startswith('rank ')}; {way_back} brings the prompt "
            self.screen.say(f"{text}back, and changes nothing there", "note")

    async def _run(self, line: str) -> None:
        try:
            await self.dispatch(line)
        except RequestFailed as error:
            self._fail(error.message)
        except DapMuxError as error:
            self._fail(str(error))
        except Exception as error:  # noqa: BLE001 - the console must survive its own faults
            self._fail(f"internal error: {type(error).__name__}: {error}")

    def _fail(self, problem: str) -> None:
        self.failed |= self._editor is None
        self.screen.say(problem, "error")

    def note_failures(self, body: Mapping[str, Any]) -> None:
        """Note that ranks have failed, or not answered, as the answer to a line says."""
        self.failed |= self._editor is None and bool(body["errors"] or body["missing"])

    async def source(self, path: str) -> None:
        """Run the lines of a file. Raises UsageError."""
        if self._sources == MAX_SOURCES:
            raise UsageError(f"{path}: {MAX_SOURCES} files run one another already")
        try:
            with open_regular(Path(path)) as file:
                lines = file.read().decode("utf-8", "replace").splitlines()
        except (OSError, ValueError) as error:
            raise UsageError(f"{path}: {error}") from None
        self._sources += 1
        try:
            for line in map(str.strip, lines):
                if line and not line.startswith("#") and not self.ended.is_set():
                    await self._run(line)
        finally:
            self._sources -= 1

    async def dispatch(self, line: str) -> None:
        """Run a line. Raises what its command does."""
        if self.set is not None and not line.startswith("%"):
            await self._dispatch_to_set(self.set, line)
        elif self.attached and not line.startswith("%"):
            name, rest = split_command(line)
            command = find(name)
            if command is not None and command.name in BREAKPOINT_WORDS:
                await command.run(self, rest)
            else:
                await self.attached.handle(line)
        else:
            name, rest = split_command(line.removeprefix("%"))
            await lookup(name).run(self, rest)

    async def _dispatch_to_set(self, current: CurrentSet, line: str) -> None:
        """Run a command of the console; anything else goes to the current set."""
        name, rest = split_command(line)
        command = None if name in PDB_WORDS and not (name == "a" and rest) else find(name)
        if command is None:
            await current.send(line)
        elif command.name == "source" and not _is_file(rest):
            await current.send(line)  # pdb's
        elif command.name in ("on", "attach", "cast"):
            await current.on(rest)
        elif command.name == "detach":
            await current.on("all")
        elif command.name == "quit" and not rest and self._editor is not None and self._stopped():
            self._asks_to_leave = True
        else:
            await command.run(self, current.default(command.name, rest))

    def _stopped(self) -> list[Row]:
        return [row for row in self.client.ranks.rows.values() if row["state"] == "stopped"]

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
            self.was_last = released = await self.client.disconnect()
            self.screen.say(
                "you were the last debugger: all ranks are released and run on"
                if released
                else "disconnected; other debuggers are still connected, no rank was resumed"
            )
        self._refresh()

    # Events

    def rows_changed(self, changes: Iterable[Change]) -> None:
        """Announce stops and ends."""
        stepping: set[DebuggeeId] = {*self.attached.stepping} if self.attached else set()
        if self.set is not None:
            stepping |= self.set.moving
        others = [change for change in changes if id_of(change[1]) not in stepping]
        if self.set is not None:
            stops = [now for before, now in others if settled(now) and not _same(before, now)]
            others = [change for change in others if not settled(change[1])]
            if stops := self.breakpoints.gathered(stops):
                self._soon(self.set.say_stops(stops))
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
        """Show what has been printed."""
        category = body.get("category", "console")
        if category == "telemetry" or (category in RANK_OUTPUT and not self._shows_output):
            return
        text = str(body["output"]).removesuffix("\n")
        if self.set is not None and category == "console":
            text = text.replace("`cast ", "`on ")  # a hint for all kinds of clients
        self.screen.say(text)

    def _soon(self, saying: Coroutine[Any, Any, None]) -> None:
        """Say something that takes a question to a rank."""

        async def say() -> None:
            # Where nobody reads any more, the next line that is said outside of a task ends it all.
            with contextlib.suppress(DapMuxError, BrokenPipeError):
                await saying
            self._refresh()

        task = asyncio.ensure_future(say())
        self._said.add(task)
        task.add_done_callback(self._said.discard)

    def _refresh(self) -> None:
        if self._editor is not None:
            self._editor.refresh()


def _is_file(path: str) -> bool:
    return "/" in path or Path(path).is_file()


def _same(before: Row | None, now: Row) -> bool:
    """Whether the rank stood there already, and that was known."""
    return before is not None and settled(before) and describe_event(before) == describe_event(now)
