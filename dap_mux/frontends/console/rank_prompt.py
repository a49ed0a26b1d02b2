"""The prompt on one or more ranks: each line typed there goes to exactly these ranks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

from dap_mux.client import RequestFailed
from dap_mux.frontends.console.context import RANKS_TIMEOUT_S, REQUEST_TIMEOUT_S, Context
from dap_mux.frontends.console.screen import ranks_table, show_cast
from dap_mux.frontends.console.session_client import SessionClient, settled
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.rank_rows import Row
from dap_mux.system.user_files import open_regular

# Where a rank is, as pdb shows it, with the lines around.


async def describe_location(client: SessionClient, row: Row, context_lines: int) -> str:
    """Return `> path(line)function()`, then the source line with the lines around it."""
    if row["line"] is None:
        return f"(location unknown: {row['reason'] or row['state']})"
    head = f"> {row['path']}({row['line']}){row['function']}()"
    lines = await source_lines(client, row)
    number = int(row["line"])
    if not 0 < number <= len(lines):
        return head
    if not context_lines:
        return f"{head}\n-> {lines[number - 1].strip()}"
    first, last = max(1, number - context_lines), min(len(lines), number + context_lines)
    shown = (
        f"{at:4} {'->' if at == number else '  '} {lines[at - 1]}".rstrip()
        for at in range(first, last + 1)
    )
    return "\n".join((head, *shown))


async def source_lines(client: SessionClient, row: Row) -> list[str]:
    """Return the lines of the file a rank is in: read here, else from the rank; maybe none."""
    try:
        text = await asyncio.to_thread(_read_text, Path(row["path"]))
    except (OSError, ValueError):
        text = await _from_rank(client, row)
    return text.splitlines()


def _read_text(path: Path) -> str:
    """Read a regular file only: the path comes from the rank, and may be anything here."""
    with open_regular(path) as file:
        return file.read().decode("utf-8", "replace")


async def _from_rank(client: SessionClient, row: Row) -> str:
    try:
        top = {"threadId": row["threadId"], "levels": 1}
        frames: list[dict[str, Any]] = (await client.request("stackTrace", top))["stackFrames"]
        source = frames[0]["source"]
        arguments = {"source": source, "sourceReference": source.get("sourceReference", 0)}
        return str((await client.request("source", arguments))["content"])
    except (RequestFailed, LookupError):
        return ""


Json: TypeAlias = dict[str, Any]
DETACH_COMMANDS: Final = ("detach", "quit", "q", "exit")
CONTINUE_COMMANDS: Final = ("c", "cont", "continue")
HELP_COMMANDS: Final = ("help", "h", "?")
RESTOP_GRACE_S: Final = 1.0
"""How long the prompt stays for a rank that another client resumed: a step stops again soon."""
BLOCKED_AFTER_S: Final = 2.0
"""How long a step may last before the user is told how to get the prompt back."""
LOCATION_PREFIX: Final = "> "  # pdb begins a location so
CONTEXT_LINES: Final = 2  # source lines shown before and after the current one
HELP_TEXT: Final = """\
Lines typed here go to {ranks} only: any command of pdb (n, s, r, unt, u, d, w, l, p, pp, a, b,
cl, j ...), an expression, or !statement.
  c, continue    continue, and close this prompt
  detach, q      close this prompt; {ranks} will not move
  %COMMAND       run a command of the console, such as %list"""


class RankPrompt:
    """A prompt on ranks. `stepping`: those whose moves the prompt itself is about to show."""

    def __init__(self, console: Context, ranks: list[RankId]) -> None:
        self.stepping: Iterable[RankId] = ()
        self._console = console
        self._client = console.client
        self._ranks = ranks
        self._set = self._client.ranks.fold(ranks)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def title(self) -> str:
        """`Pdb 13`."""
        return f"Pdb {self._set}"

    async def open(self) -> None:
        """Show where the ranks are, and what a single rank printed last."""
        self._console.screen.say(f"Attached to debug session for {self._name()}", "note")
        await self._show_location(CONTEXT_LINES)
        if len(self._ranks) == 1 and self._ranks[0] in self._console.last_output:
            self._console.screen.say(self._console.last_output[self._ranks[0]])

    def close(self, reason: str) -> None:
        """Announce that the prompt is closed."""
        self._cancel_timer()
        if reason:
            self._console.screen.say(reason, "note")
        self._console.screen.say(f"Detaching from debug session for {self._name()}", "note")
        self._console.screen.say(f"Detached from debug session for {self._name()}", "note")

    async def handle(self, line: str) -> None:
        """Handle one line typed here."""
        if line in DETACH_COMMANDS:
            self._console.detach()
        elif line in HELP_COMMANDS:
            self._console.screen.say(HELP_TEXT.format(ranks=self._name()))
        elif line in CONTINUE_COMMANDS:
            await self._cast(line)
            self._console.detach()
        else:
            self.stepping = self._ranks
            telling = asyncio.ensure_future(self._tell_blocked())
            try:
                await self._step(line)
            finally:
                self.stepping = ()
                telling.cancel()

    async def _tell_blocked(self) -> None:
        """Once the ranks have run for a while: their step does not end by itself, perhaps."""
        await asyncio.sleep(BLOCKED_AFTER_S)
        while not any(map(may_stop, self._rows())):
            await self._client.wait_for_change()
            if self._client.ended.is_set():
                return
        self._console.blocked(self._client.ranks.name(self._ranks))

    async def _step(self, line: str) -> None:
        """Send a line; if that moves ranks, wait until they stop, and show where."""
        before = self._rows()
        body = await self._cast(line)
        if _has_moved_nobody(body):
            return
        shown = _says_where(body)
        await self._client.list_ranks(self._set)
        while any(map(may_stop, self._rows())) and not self._client.ended.is_set():
            shown = False  # the result came before the stop
            await self._client.wait_for_change()
        if not self._any_stopped():
            self._console.detach(self._states())
        elif self._rows() != before and not shown:
            await self._show_location(0)

    async def _cast(self, line: str) -> Json:
        """Send a line, show the results, and return the answer."""
        arguments = {"ranks": self._set, "command": line, "timeout": REQUEST_TIMEOUT_S}
        body = await self._client.request("cast", arguments, timeout_s=RANKS_TIMEOUT_S)
        show_cast(self._console.screen, body, single=len(self._ranks) == 1)
        self._console.note_failures(body)
        values = [str(result["value"]) for result in body["results"] if result["value"]]
        if values and not _says_where(body) and line not in CONTINUE_COMMANDS:
            self._console.last_output.update(dict.fromkeys(self._ranks, values[0]))
        return body

    async def complete(self, text: str) -> tuple[int, list[str]]:
        """Return where the name at the end of a line begins, and its completions.

        The ranks know the names; there are none when no rank answers.
        """
        head = f"cast {self._set} "
        arguments = {"text": head + text, "column": len(head + text) + 1}
        try:
            body = await self._client.request("completions", arguments, timeout_s=REQUEST_TIMEOUT_S)
        except DapMuxError:
            return len(text), []
        targets = [target for target in body["targets"] if target.get("start", 0) >= len(head)]
        starts = [target["start"] - len(head) for target in targets]
        names = [str(target.get("text") or target["label"]) for target in targets]
        return starts[0] if starts else len(text), [
            name for name, start in zip(names, starts, strict=True) if start == starts[0]
        ]

    # Other clients

    def follow(self) -> None:
        """Ranks have changed: close the prompt once all of them have resumed or exited."""
        if self._any_stopped():
            self._cancel_timer()
        elif not any(map(may_stop, self._rows())):
            self._console.detach(self._states())
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(RESTOP_GRACE_S, self._close_if_running)

    def _close_if_running(self) -> None:
        self._timer = None
        if self._console.attached is self and not self.stepping and not self._any_stopped():
            self._console.detach(self._states())

    def _cancel_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    # Where the ranks are

    @property
    def target(self) -> tuple[str, list[Row]]:
        """The ranks of the prompt, and their rows."""
        return self._set, self._rows()

    def _rows(self) -> list[Row]:
        rows = self._client.ranks.rows
        return [rows[rank] for rank in self._ranks if rank in rows]

    def _any_stopped(self) -> bool:
        return any(row["state"] == "stopped" for row in self._rows())

    def _states(self) -> str:
        states = sorted({str(row["state"]) for row in self._rows()}) or ["gone"]
        return f"{self._name()}: {', '.join(states)}"

    async def _show_location(self, context_lines: int) -> None:
        rows = self._rows()
        if len(rows) == 1:
            location = await describe_location(self._client, rows[0], context_lines)
            self._console.screen.say(location, "place")
        else:
            self._console.screen.table(ranks_table(rows, "classes"))

    def _name(self) -> str:
        hosts = sorted({str(row["host"]) for row in self._rows() if row["host"]})
        name = self._client.ranks.name(self._ranks)
        return f"{name} ({', '.join(hosts)})" if hosts else name


def _says_where(body: Json) -> bool:
    """Whether the answer to a cast says where ranks are now."""
    return any(str(result["value"]).startswith(LOCATION_PREFIX) for result in body["results"])


def _has_moved_nobody(body: Json) -> bool:
    """Whether the answer to a cast is the value of an expression in every rank, at its stop."""
    others = body["errors"] or body["missing"] or body["inMain"]
    return not others and all(result["type"] for result in body["results"])


def may_stop(row: Row) -> bool:
    """Whether the rank may stop without another command."""
    return row["state"] in ("running", "pausing") or (
        row["state"] == "stopped" and not settled(row)
    )
