"""`dap-mux record`: a client that nobody sits at, which looks at each stop and continues."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple

import anyio

from dap_mux.frontends.console.session_client import SessionClient, is_exception, settled
from dap_mux.frontends.report.look import LIMIT_S, Look
from dap_mux.frontends.report.report_file import MAX_STOPS, Body, Printed, Stop
from dap_mux.pure.endpoint import is_loopback
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.why.verdict import DEFAULT_GROUP
from dap_mux.pure.insight.why.verdicts import HEALTHY, UNDECIDED
from dap_mux.pure.rank_sets import RankId, fold
from dap_mux.pure.rank_sets.rank_rows import Row
from dap_mux.pure.rank_sets.world import DebuggeeId

SETTLE_S: Final = 1.0
"""So long after the last change ranks are looked at, though others still run."""
MAX_SETTLE_S: Final = 10.0
BEGINNING: Final = frozenset({"waiting", "connecting"})
"""Ranks that are still to come, for which the first stop waits."""
CONFIRMED_AFTER_S: Final = 5.0
"""A job that is only slow has gone on by then."""
LAST_S: Final = 2.0
"""For what ranks printed last, after the job's end."""
MAX_CHARACTERS: Final = 1_000_000
"""Of output; the last are kept."""
_PREFIX: Final = re.compile(r"\[([^\]\n]{1,200})\] ")
NOTICE: Final = "dap-mux: "
UNSEEN: Final[Body] = {"verdict": UNDECIDED, "suspects": []}


class Outside(NamedTuple):
    """The ways to follow a job in whose ranks there is no debugger, which would slow them down.

    `follow` joins as an observer; `why` raises `DapMuxError` where ranks cannot be seen.
    """

    follow: Callable[[], Awaitable[SessionClient]]
    why: Callable[[], Awaitable[Body]]


@dataclass(eq=False)
class Recorder:
    """The client in the job's own process; `_join` connects it, with its breakpoints.

    `_outside`: it joins only when a rank is held at its failure, the job seems to hang, or ranks
    can be seen by a debugger alone.
    """

    _join: Callable[[], Awaitable[SessionClient]]
    expressions: list[str]
    on_hang: float | None = None
    _outside: Outside | None = None
    takes_terminal: bool = False
    stops: deque[Stop] = field(default_factory=lambda: deque(maxlen=MAX_STOPS))
    count: int = 0
    """All stops, those that were not kept too."""
    why: Body = field(default_factory=dict)
    """The verdict for which the job was ended."""
    problem: str = ""
    rows: dict[DebuggeeId, Row] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    _printed: deque[Printed] = field(default_factory=deque)
    _characters: int = 0
    _start: float = field(default_factory=time.monotonic)

    async def run(self) -> bool:
        """Record until the job has ended; the session releases all ranks if that fails."""
        try:
            while self._outside is None or await self._is_needed(self._outside):
                if not await self._debug():
                    break
        except DapMuxError as error:
            if self._outside is None:  # ranks wait for us
                raise
            self.problem = str(error)
        return False

    async def _is_needed(self, outside: Outside) -> bool:
        """Follow the job; return True once a debugger has to look, False at its end."""
        async with self._following(await outside.follow()) as client:
            async with anyio.create_task_group() as tasks:
                if self.on_hang:
                    tasks.start_soon(self._suspect, outside, self.on_hang, tasks.cancel_scope)
                while not (
                    client.ended.is_set() or any(map(needs_debugger, client.ranks.all.values()))
                ):
                    await client.wait_for_change()
                tasks.cancel_scope.cancel()
            return not client.ended.is_set()

    async def _debug(self) -> bool:
        """Record stops, and a hang; return True if the job goes on, and needs no debugger."""
        async with self._following(await self._join()) as client:
            look = Look(client, self.expressions)
            self.texts = look.texts
            async with anyio.create_task_group() as tasks:
                if self.on_hang:
                    watch = self._watch(client, look, self.on_hang, tasks.cancel_scope)
                    tasks.start_soon(self._noting, watch)
                await self._noting(self._stops(client, look))
                tasks.cancel_scope.cancel()
            goes_on = not (client.ended.is_set() or self.problem)
            if goes_on:
                await client.disconnect()
            return goes_on

    async def _noting(self, work: Awaitable[None]) -> None:
        """Note what goes wrong here: a task group would hand on a group of errors."""
        try:
            await work
        except DapMuxError as error:
            self.problem = str(error)

    @asynccontextmanager
    async def _following(self, client: SessionClient) -> AsyncIterator[SessionClient]:
        """Keep rows and output; the job's end, which cancels us, is waited for."""
        self.rows = client.ranks.all
        client.on_output.append(self.output)
        last = LAST_S
        try:
            yield client
            last = 0.0
        finally:
            with anyio.CancelScope(shield=True):
                with anyio.move_on_after(last):
                    await client.ended.wait()
                self.rows = {**client.ranks.all}
                await client.close()

    def interrupt(self) -> bool:
        """Leave a Ctrl-C to the job."""
        return False

    # Stops

    async def _stops(self, client: SessionClient, look: Look) -> None:
        while not client.ended.is_set():
            if not any(map(settled, client.ranks.rows.values())):
                await client.wait_for_change()
                continue
            await self._settled(client)
            rows = [row for row in client.ranks.rows.values() if settled(row)]
            self._keep(await look.at_now(self._after()))
            # A rank that is held at its end runs on only if it is named alone.
            held = [[row] for row in rows if is_exception(row)]
            for some in ([row for row in rows if not is_exception(row)], *held):
                if some:
                    asked = {"ranks": look.named(some), "command": "c"}
                    await client.request("cast", asked, timeout_s=LIMIT_S)
            await client.list_ranks()  # it comes before any event of their next stop

    async def _settled(self, client: SessionClient) -> None:
        """Wait for others that stop at the same place; those that wait for them never come."""
        with anyio.move_on_after(MAX_SETTLE_S):
            while not client.ended.is_set():
                states = {row["state"] for row in client.ranks.rows.values()}
                begins = not self.count and bool(states & BEGINNING)
                if not begins and "running" not in states:
                    return
                with anyio.move_on_after(MAX_SETTLE_S if begins else SETTLE_S) as quiet:
                    await client.wait_for_change()
                if quiet.cancelled_caught:
                    return

    def _keep(self, stop: Stop) -> None:
        self.count += 1
        self.stops.append(stop)

    def _after(self) -> float:
        return round(time.monotonic() - self._start, 3)

    # A hang

    async def _suspect(self, outside: Outside, every: float, following: anyio.CancelScope) -> None:
        """End following once two looks from outside agree that ranks stand still, or see nothing.

        What a debugger alone can see is undecided from outside.
        """

        async def look() -> Body | None:
            try:
                body = await outside.why()
            except DapMuxError:
                return UNSEEN
            return None if body["verdict"] == HEALTHY else body

        while True:
            await anyio.sleep(every)
            if await _agreed(look, every) is not None:
                following.cancel()

    async def _watch(
        self, client: SessionClient, look: Look, every: float, debugging: anyio.CancelScope
    ) -> None:
        """End the job once two looks agree on what it hangs in."""
        await anyio.sleep(min(CONFIRMED_AFTER_S, every) if self._outside else every)
        while (again := await _agreed(partial(self._verdict, client), every)) is None:
            if self._outside and not self.count:
                debugging.cancel()
            await anyio.sleep(every)
        title = f"{again['verdict']}: {again['sentence']}"
        self._keep(await look.at_now(self._after(), title, again))
        self.why = again
        await client.request("disconnect", {"terminateDebuggee": True}, timeout_s=LIMIT_S)

    @staticmethod
    async def _verdict(client: SessionClient) -> Body | None:
        if any(row["state"] == "stopped" for row in client.ranks.rows.values()):
            return None
        body = await client.request("why", {"ranks": "all"}, timeout_s=LIMIT_S)
        return None if body["verdict"] in (HEALTHY, UNDECIDED) else body

    # Events of the session

    def output(self, body: Mapping[str, Any]) -> None:
        """Keep what is printed, by rank."""
        category = str(body.get("category") or "console")
        for line in str(body.get("output", "")).splitlines(keepends=True):
            found = _PREFIX.match(line) if len(self.rows) > 1 else None
            if found:
                one = Printed(line[found.end() :], category, found[1])
            elif line.startswith(NOTICE) or not self.rows:
                one = Printed(line, category)
            elif len(self.rows) == 1:
                one = Printed(line, category, str(next(iter(self.rows))[1]))
            else:  # it continues the line before it
                one = Printed(line, category, self._printed[-1].ranks if self._printed else "")
            self._printed.append(one)
            self._characters += len(one.text)
        while self._characters > MAX_CHARACTERS:
            self._characters -= len(self._printed.popleft().text)

    def replace_output(self, kept: Sequence[tuple[RankId, str]]) -> None:
        """Put what ranks have kept of their output in the place of what a debugger saw of it.

        Workers of a cluster keep none, but a debugger is attached to them from the start.
        """
        if any(group != DEFAULT_GROUP for group, *_ in self.rows):
            return
        most = MAX_CHARACTERS // max(len(kept), 1)
        by_text = grouped((text[-most:], rank) for rank, text in sorted(kept))
        of_ranks = (Printed(text, ranks=fold(ranks)) for text, ranks in by_text.items() if text)
        self._printed = deque([*(one for one in self._printed if not one.ranks), *of_ranks])

    @property
    def printed(self) -> list[Printed]:
        """The output, what the same ranks printed in a row together."""
        together = groupby(self._printed, lambda one: (one.ranks, one.category))
        return [
            Printed("".join(one.text for one in group), category, ranks)
            for (ranks, category), group in together
        ]


def _culprit(body: Body) -> tuple[str, list[str]]:
    return body["verdict"], [each["ranks"] for each in body["suspects"][:1]]


async def _agreed(look: Callable[[], Awaitable[Body | None]], every: float) -> Body | None:
    """Look, and again later; return what both looks blame, None if they differ."""
    first = await look()
    if first is None:
        return None
    await anyio.sleep(min(CONFIRMED_AFTER_S, every))
    again = await look()
    return again if again is not None and _culprit(again) == _culprit(first) else None


def needs_debugger(row: Row) -> bool:
    """Whether a rank needs a debugger: it is held at its failure, or not to be seen without one."""
    host, _, _ = str(row["endpoint"]).rpartition(":")
    held = str(row["reason"]).startswith("failed: ")
    here = row["group"] == DEFAULT_GROUP and is_loopback(host)
    return row["state"] != "exited" and (held or not here)
