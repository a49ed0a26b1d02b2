"""The prompt on a rank, or on several: what is typed there goes to exactly them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dap_mux.console.answers import show_cast
from dap_mux.console.picture import Row, settled
from dap_mux.console.places import where
from dap_mux.console.tables import ranks_table
from dap_mux.errors import DapMuxError
from dap_mux.rank_sets import RankId

if TYPE_CHECKING:
    from dap_mux.console.console import Console

LEAVE: Final = ("detach", "quit", "q", "exit")
RESUME: Final = ("c", "cont", "continue")
HELP: Final = ("help", "h", "?")
GRACE: Final = 1.0  # s in which a rank that somebody else steps may stop again
TIMEOUT: Final = 5.0  # s for ranks to answer, as the engine has it
PLACE: Final = "> "  # so begins an answer that tells a place
AROUND: Final = 2  # lines shown before and after the one where a rank stands
HELP_TEXT: Final = """\
What you type goes to {ranks} and nobody else: any command of pdb (n, s, r, unt, u, d, w, l, p, pp,
a, b, cl, j ...), an expression, or !statement.
  c, continue    let it run on, and come back
  detach, q      come back; it stays where it is
  %COMMAND       a command of the console, such as %list"""


class Attached:
    """Which ranks the prompt is on. `busy_with`: those whose moves are being shown anyway."""

    def __init__(self, console: Console, ranks: list[RankId]) -> None:
        self.busy_with: Iterable[RankId] = ()
        self._console = console
        self._link = console.link
        self._ranks = ranks
        self._set = self._link.picture.fold(ranks)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def title(self) -> str:
        """`Pdb 13`."""
        return f"Pdb {self._set}"

    async def arrive(self) -> None:
        """Say where the ranks stand, and what a single one said last."""
        self._console.screen.say(f"Attached to debug session for {self._name()}", "note")
        await self._show_place(AROUND)
        if len(self._ranks) == 1 and self._ranks[0] in self._console.last_output:
            self._console.screen.say(self._console.last_output[self._ranks[0]])

    def say_goodbye(self, why: str) -> None:
        """Say that the prompt is left."""
        self._disarm()
        if why:
            self._console.screen.say(why, "note")
        self._console.screen.say(f"Detaching from debug session for {self._name()}", "note")
        self._console.screen.say(f"Detached from debug session for {self._name()}", "note")

    async def do(self, line: str) -> None:
        """One line typed here."""
        if line in LEAVE:
            self._console.detach()
        elif line in HELP:
            self._console.screen.say(HELP_TEXT.format(ranks=self._name()))
        elif line in RESUME:
            await self._cast(line)
            self._console.detach()
        else:
            self.busy_with = self._ranks
            try:
                await self._step(line)
            finally:
                self.busy_with = ()

    async def _step(self, line: str) -> None:
        """Send a line; where that has moved ranks, wait until they stand, and say where."""
        before = self._rows()
        told = await self._cast(line)
        await self._link.look(self._set)
        while any(map(_moving, self._rows())) and not self._link.over.is_set():
            told = False  # the answer came before the stop
            await self._link.moved()
        if not self._stand():
            self._console.detach(self._why_not())
        elif self._rows() != before and not told:
            await self._show_place(0)

    async def _cast(self, line: str) -> bool:
        """Send a line and show the answer; return whether that says where ranks stand now."""
        asked = {"ranks": self._set, "command": line, "timeout": TIMEOUT}
        body = await self._link.ask("cast", asked, patience=TIMEOUT + 10)
        show_cast(self._console.screen, body, alone=len(self._ranks) == 1)
        said = [str(one["value"]) for one in body["results"] if one["value"]]
        places = any(one.startswith(PLACE) for one in said)
        if said and not places and line not in RESUME:
            self._console.last_output.update(dict.fromkeys(self._ranks, said[0]))
        return places

    async def complete(self, text: str) -> tuple[int, list[str]]:
        """Return where the name at the end of a line begins, and what it may become.

        The ranks know the names; nothing where none of them answers.
        """
        head = f"cast {self._set} "
        asked = {"text": head + text, "column": len(head + text) + 1}
        try:
            body = await self._link.ask("completions", asked, patience=TIMEOUT)
        except DapMuxError:
            return len(text), []
        found = [one for one in body["targets"] if one.get("start", 0) >= len(head)]
        starts = [one["start"] - len(head) for one in found]
        names = [str(one.get("text") or one["label"]) for one in found]
        return starts[0] if starts else len(text), [
            name for name, start in zip(names, starts, strict=True) if start == starts[0]
        ]

    # What others do

    def follow(self) -> None:
        """The picture has changed: stay while a rank stands, leave when it runs on or ends."""
        if self._stand():
            self._disarm()
        elif not any(map(_moving, self._rows())):
            self._console.detach(self._why_not())
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GRACE, self._left_behind)

    def _left_behind(self) -> None:
        self._timer = None
        if self._console.attached is self and not self.busy_with and not self._stand():
            self._console.detach(self._why_not())

    def _disarm(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    # Where they are

    def _rows(self) -> list[Row]:
        rows = self._link.picture.rows
        return [rows[rank] for rank in self._ranks if rank in rows]

    def _stand(self) -> bool:
        return any(row["state"] == "stopped" for row in self._rows())

    def _why_not(self) -> str:
        states = sorted({str(row["state"]) for row in self._rows()}) or ["gone"]
        return f"{self._name()}: {', '.join(states)}"

    async def _show_place(self, around: int) -> None:
        rows = self._rows()
        if len(rows) == 1:
            self._console.screen.say(await where(self._link, rows[0], around), "place")
        else:
            self._console.screen.table(ranks_table(rows, "classes"))

    def _name(self) -> str:
        hosts = sorted({str(row["host"]) for row in self._rows() if row["host"]})
        name = self._link.picture.name(self._ranks)
        return f"{name} ({', '.join(hosts)})" if hosts else name


def _moving(row: Row) -> bool:
    """Whether it may stop again by itself."""
    return row["state"] in ("running", "pausing") or (
        row["state"] == "stopped" and not settled(row)
    )
