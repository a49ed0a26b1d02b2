"""The current set: the ranks that a plain line goes to, as the prompt names them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from dap_mux.frontends.console.commands import known_words
from dap_mux.frontends.console.context import RANKS_TIMEOUT_S, REQUEST_TIMEOUT_S, Context
from dap_mux.frontends.console.rank_prompt import BLOCKED_AFTER_S, may_stop, source_lines
from dap_mux.frontends.console.screen import show_cast
from dap_mux.frontends.console.session_client import LIVE, is_exception, place, settled
from dap_mux.frontends.console.words import MOVES, likely_meant
from dap_mux.pure.errors import UsageError
from dap_mux.pure.grouping import grouped
from dap_mux.pure.rank_sets import RankId, RankSetError, parse, split_leading, with_group
from dap_mux.pure.rank_sets.rank_rows import Row, id_of
from dap_mux.pure.rank_sets.world import DebuggeeId, rank_of

Json: TypeAlias = dict[str, Any]
REPORTS: Final = ("list", "stacks", "wait", "why")  # about all ranks, unless others are named
UNKNOWN: Final = "an unknown place"
HELD_UP: Final = "waits in "  # the reason of a rank that waits for ranks that are stopped
TOGETHER_S: Final = 0.5  # for ranks that waited for those that moved: they stop a little later
MAX_NAME: Final = 40  # characters of the ranks in a prompt; a longer list is shown as it was typed
MAX_HISTORY: Final = 20


class CurrentSet:
    """Sends plain lines to the ranks of one set, and waits until those that moved have settled.

    `moving`: ranks whose stops are shown when all of them have settled.
    """

    def __init__(self, console: Context) -> None:
        self.text = "all"
        self.moving: frozenset[RankId] = frozenset()
        self._earlier: list[str] = []
        self._elsewhere = False  # the set holds for one command
        self._console = console
        self._client = console.client

    @property
    def prompt(self) -> str:
        """`[0-3 run:0-1]> `: the live ranks of the set, and what they do."""
        rows = [row for row in self.rows() if row["state"] in LIVE]
        if not rows:
            return f"[{self._nobody()}]> "
        stopped = [row for row in rows if row["state"] == "stopped"]
        run = [row for row in rows if row["state"] != "stopped"]
        if not stopped:
            state = " run"
        elif run:
            state = f" run:{self._name(run)}"
        else:
            state = " *" if len({(row["path"], row["line"]) for row in stopped}) > 1 else ""
        return f"[{self._name(rows)}{state}]> "

    @property
    def is_held(self) -> bool:
        """Whether an exception holds a rank of the set."""
        return any(map(is_exception, self.rows()))

    def rows(self) -> list[Row]:
        """Return the rows of the set's ranks, as far as the console knows them."""
        return self._rows(self.text)

    def running(self) -> list[Row]:
        """Return the rows of the set's ranks that run."""
        return [row for row in self.rows() if row["state"] in ("running", "pausing")]

    # Choosing

    async def on(self, rest: str) -> None:
        """`on`, `on -`, `on SET` or `on SET COMMAND`. Raises UsageError, RankSetError."""
        if not rest:
            self._console.screen.say(f"on {self.text}", "place")
            if self._earlier:
                self._console.screen.say(f"before: {', '.join(self._earlier)}", "quiet")
            return
        if rest == "-":
            if not self._earlier:
                raise UsageError("there was no set before this one")
            await self._choose(self._earlier[-1])
            return
        ranks = with_group(rest)
        try:
            parse(ranks)
        except RankSetError:
            await self._once(*split_leading(rest))
        else:
            await self._choose(ranks)

    async def _once(self, ranks: str, line: str) -> None:
        """Run one line as if this were the set. Raises what the line does."""
        await self._client.list_ranks(ranks)
        before, self.text, self._elsewhere = self.text, ranks, True
        try:
            await self._console.dispatch(line)
        finally:
            self.text, self._elsewhere = before, False

    async def _choose(self, ranks: str) -> None:
        """Make it the current set, and show where its ranks are. Raises UsageError."""
        rows = await self._client.list_ranks(ranks)
        if not rows and ranks != "all":
            raise UsageError(f"no ranks match {ranks}")
        if ranks != self.text:
            self._earlier = [*self._earlier, self.text][-MAX_HISTORY:]
            self.text = ranks
        await self._say_places([row for row in rows if settled(row)])

    def default(self, command: str, rest: str) -> str:
        """Return what follows a command of the console, with the set where no ranks are named."""
        if command in REPORTS and self._elsewhere and not rest.strip():
            return self.text
        if command in ("pause", "release") and not rest:
            return self.text
        if command == "compare" and rest and self.text != "all":
            try:
                split_leading(rest)
            except RankSetError:
                return f"{self.text} {rest}"
        return rest

    # Sending

    async def send(self, line: str) -> None:
        """Send a line to the set; if its ranks move, wait and say where."""
        await self._console.breakpoints.begin(line)
        ranks = self.text
        word = line.split(maxsplit=1)[0]
        arguments = {"ranks": ranks, "command": line, "timeout": REQUEST_TIMEOUT_S}
        if word not in MOVES:
            body = await self._client.request("cast", arguments, timeout_s=RANKS_TIMEOUT_S)
            show_cast(self._console.screen, body, single=len(self._rows(ranks)) == 1)
            self._console.note_failures(body)
            if not body["results"] and (
                likely := likely_meant(line, body["errors"], known_words())
            ):
                text = f"there is no command {word!r} either: did you mean {likely!r}?"
                self._console.screen.say(text, "note")
            return
        rows = await self._client.list_ranks(ranks)
        before: dict[DebuggeeId, Row] = {id_of(row): row for row in rows}
        if not any(row["state"] == "stopped" for row in rows):
            who = self._name(rows) if rows else ranks
            raise UsageError(f"no rank of {who} is stopped: 'pause {ranks}' stops those that run")
        # Those that wait for these ranks move with them.
        known = self._client.ranks.all
        held_up = {id: row for id, row in known.items() if _wait_of(row)}
        before = {**held_up, **before}
        self.moving = frozenset(rank_of(id) for id in before)
        telling = asyncio.ensure_future(self._tell_blocked())
        try:
            body = await self._client.request("cast", arguments, timeout_s=RANKS_TIMEOUT_S)
            show_cast(self._console.screen, {**body, "results": []})
            self._console.note_failures(body)
            await self._client.list_ranks(ranks)
            await self._until_settled()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._until_stopped(held_up), TOGETHER_S)
            # Those that have come round to the same place look as they did before.
            went = [row for one in body["results"] for row in self._rows(str(one["ranks"]))]
            await self._say_moved({**before, **dict.fromkeys(map(id_of, went))})
            _show_displays(self._console, body)
        finally:
            self.moving = frozenset()
            telling.cancel()

    async def _tell_blocked(self) -> None:
        """Say how the prompt comes back, once ranks have run for a while."""
        await asyncio.sleep(BLOCKED_AFTER_S)
        if run := self._unsettled():
            self._console.blocked(self._client.ranks.name(map(id_of, run)))

    async def _until_settled(self) -> None:
        """Wait until no rank may stop, or those that may wait for others, as far as is known.

        A rank that waits for a waiting rank shows no reason in its row, and nothing changes then.
        """
        while self._unsettled() and not self._client.ended.is_set():
            known = self._client.ranks.rows
            rows = [known[id] for id in self.moving if id in known]
            hold = any(_wait_of(row) or is_exception(row) for row in rows)
            try:
                change = self._client.wait_for_change()
                await asyncio.wait_for(change, BLOCKED_AFTER_S if hold else None)
            except asyncio.TimeoutError:
                return

    async def _until_stopped(self, ids: Iterable[DebuggeeId]) -> None:
        """Wait for ranks that the others may have let on."""
        ids = [*ids]
        while self._any_runs(ids) and not self._client.ended.is_set():
            await self._client.wait_for_change()

    def _any_runs(self, ids: Iterable[DebuggeeId]) -> bool:
        rows = self._client.ranks.all
        return any(id in rows and not settled(rows[id]) for id in ids)

    def _unsettled(self) -> list[Row]:
        """Return the rows of ranks that may stop without another command."""
        rows = self._client.ranks.rows
        moving = [rows[id] for id in sorted(self.moving) if id in rows]
        return [row for row in moving if may_stop(row) and not _wait_of(row)]

    async def _say_moved(self, before: dict[Any, Row | None]) -> None:
        """Say where ranks have stopped, which have ended, and which wait for others."""
        known = self._client.ranks.rows
        rows = [known[id] for id in sorted(self.moving) if id in known]
        moved = [row for row in rows if row != before.get(id_of(row))]
        await self.say_stops([row for row in moved if settled(row)])
        run = (row for row in moved if row["state"] in ("running", "pausing"))
        for wait, waiting in grouped((_wait_of(row), row) for row in run).items():
            alone = len(waiting) == 1
            why = f": {wait if alone else wait.replace('waits', 'wait', 1)}" if wait else ""
            self._console.screen.say(f"{self._name(waiting)} run{'s' * alone}{why}", "note")
        ends = [(None, row) for row in moved if row["state"] not in LIVE]
        for line in self._client.ranks.announcements(ends):
            self._console.screen.say(line, "note")

    # Where ranks are

    async def say_stops(self, rows: Sequence[Row]) -> None:
        """Say where ranks have stopped, and why."""
        await self._say_places(rows, stopped=True)
        await self._console.breakpoints.drop_temporary(rows)

    async def _say_places(self, rows: Sequence[Row], *, stopped: bool = False) -> None:
        """Say where ranks are: a line for each place, and the code where it is one."""
        at = (((row["path"], row["line"], row["reason"]), row) for row in rows)
        places = [*grouped(at).values()]
        for row, *others in places:
            name = self._name([row, *others])
            where = f"{name} {'stopped ' * stopped}at {place(row) or UNKNOWN}"
            if is_exception(row):
                text = await self._client.exception_text(row) or row["reason"] * stopped
                self._console.screen.say(f"{where}   {text}".rstrip(), "held")
            elif stopped:
                why = self._console.breakpoints.stopping(row)
                self._console.screen.say(f"{where} ({why})", "note")
            else:
                self._console.screen.say(where, "place")
        if len(places) == 1:
            await self._say_code(places[0][0])

    async def _say_code(self, row: Row) -> None:
        if row["line"] is None:
            return
        lines, number = await source_lines(self._client, row), int(row["line"])
        if 0 < number <= len(lines):
            self._console.screen.say(f"{number} ->  {lines[number - 1].strip()}")

    def _rows(self, ranks: str) -> list[Row]:
        """Return the rows of these ranks, as far as the console knows them."""
        tracker = self._client.ranks
        world = tracker.world(self._console.named_sets)
        try:
            ids = parse(ranks).select(world, strict=False)
        except RankSetError:  # a named set that the console has not heard of
            return []
        return [tracker.rows[id] for id in ids if id in tracker.rows]

    def _name(self, rows: Iterable[Row]) -> str:
        rows = list(rows)
        name = self._client.ranks.fold(map(id_of, rows))
        return name if len(name) <= MAX_NAME else f"{len(rows)} ranks"

    def _nobody(self) -> str:
        """Say why no rank of the set is live."""
        rows = self.rows()
        states = {str(row["state"]) for row in rows}
        return f"{self._name(rows)} {states.pop()}" if states == {"exited"} else "waiting"


def _wait_of(row: Row) -> str:
    """Return what a running rank waits for, "" if it does not wait for stopped ranks."""
    text = str(row["reason"] or "")
    return text if row["state"] == "running" and text.startswith(HELD_UP) else ""


def _show_displays(console: Context, body: Json) -> None:
    """Show the displayed values that follow the place in the answers to a step."""
    shown = []
    for result in body["results"]:
        lines = str(result["value"]).splitlines()
        values = [line for line in lines if not line.startswith(("> ", "-> ", "running"))]
        if values:
            shown.append({**result, "value": "\n".join(values)})
    if shown:
        show_cast(console.screen, {**body, "results": shown, "errors": [], "missing": ""})
