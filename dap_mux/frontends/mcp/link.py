"""The agent's connections: to look at a session as an observer, to drive it as a debugger."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any, Final, Protocol

from dap_mux.frontends.console.breakpoints import Breakpoints
from dap_mux.frontends.console.session_client import BreakpointsByPath, SessionClient
from dap_mux.frontends.mcp.answers import Body, Unable
from dap_mux.pure.errors import DapMuxError, NothingToConnect
from dap_mux.pure.rank_sets import RankSetError, parse, with_group
from dap_mux.pure.rank_sets.rank_rows import Row, classes, id_of
from dap_mux.system.session_files import SessionFile, find, running

MAX_LINES: Final = 5000
MAX_LINE: Final = 2000
"""Characters of a line that are kept."""
NOTICE: Final = "dap-mux: "
RESPONSE_S: Final = 20.0
"""For ranks to answer: a client's own time-out is 30 s."""
WAITING: Final = "waiting"
NO_DEBUGGER: Final = (
    "no debugger is attached to these ranks: `lease` with action `take` attaches one; ranks that "
    "wait for it stop at their first line, or run on where that is not known"
)


class Ways(Protocol):
    """What the command line does for the agent."""

    @property
    def show_secrets(self) -> bool:
        """Whether the user wants the agent to see them."""

    async def observe(self, session: SessionFile) -> SessionClient:
        """Connect to look."""

    async def join(self, session: SessionFile, breakpoints: BreakpointsByPath) -> SessionClient:
        """Connect to drive, and wait until the ranks are reached."""

    async def why(self, session: SessionFile, ranks: str, *, slow: bool) -> Body:
        """Return the response of `why`; `slow`: who makes the others wait."""

    async def stacks_outside(self, rows: Sequence[Row], *, every_thread: bool) -> Body | None:
        """Return the response of `stacks` for ranks of this machine without a debugger."""


class Printed:
    """The last lines that ranks have printed, each with a number that only grows."""

    def __init__(self) -> None:
        self.last = 0
        self._lines: deque[tuple[int, str, str]] = deque(maxlen=MAX_LINES)

    def add(self, category: str, text: str) -> None:
        """Keep the lines of an `output` event."""
        for line in text.splitlines():
            self.last += 1
            self._lines.append((self.last, category, line[:MAX_LINE]))

    def after(self, number: int) -> list[tuple[int, str, str]]:
        """Return the kept lines behind this one: number, category and text."""
        return [line for line in self._lines if line[0] > number]


class Link:
    """One session: its ranks, what they print, and what the agent watches."""

    def __init__(
        self, ways: Ways, session: SessionFile, client: SessionClient, printed: Printed
    ) -> None:
        self.session = session
        self.client = client
        self.printed = printed
        self.breakpoints: Breakpoints | None = None
        self.watches: dict[str, str] = {}
        """The answer at the last stop, by expression."""
        self.notices: deque[str] = deque(maxlen=8)
        """For the agent's next answer."""
        self._ways = ways
        self._joining = asyncio.Lock()
        self._has_driven = False
        client.on_output.append(self.output)

    # What the session tells

    def output(self, body: Mapping[str, Any]) -> None:
        """Keep what is printed; what the session itself says, for the next answer too."""
        text = str(body.get("output", ""))
        self.printed.add(str(body.get("category") or "console"), text)
        if text.startswith(NOTICE):
            self.notices.append(text.removeprefix(NOTICE).strip())

    def taken_notices(self) -> list[str]:
        """Return what the session has said since the last answer."""
        taken = [*self.notices]
        self.notices.clear()
        return taken

    # Looking

    async def ask(self, command: str, arguments: Mapping[str, Any]) -> Body:
        """Send a request. Raises DapMuxError."""
        if self.client.ended.is_set():
            raise Unable("ended", f"{self.client.end_reason}; `output` still has what it printed")
        return await self.client.request(command, arguments, timeout_s=RESPONSE_S)

    async def rows(self, ranks: str) -> list[Row]:
        """Return the rows of a rank set, as they are now."""
        if self.client.ended.is_set():
            return [*self.client.ranks.rows.values()]
        await self.client.list_ranks()
        listed = await self.client.list_ranks(chosen(ranks))
        return [self.client.ranks.all.get(id_of(row), row) for row in listed]

    async def debugged(self, ranks: str) -> list[Row]:
        """Return the same. Raises Unable where nobody debugs any of them."""
        rows = await self.rows(ranks)
        if rows and all(row["state"] == WAITING for row in rows):
            raise Unable("no-debugger", NO_DEBUGGER, ["lease"])
        return rows

    def folded(self, rows: Sequence[Row]) -> list[Body]:
        """Return one entry for all ranks at the same place in the same state, most ranks first."""
        return [
            {
                "ranks": self.client.ranks.fold([id_of(row) for row in one]),
                "state": one[0]["state"],
                **{key: text for key, text in _where(one[0]).items() if text},
            }
            for one in classes(rows)
        ]

    def folded_names(self, names: Sequence[str]) -> str:
        """Return one rank set for several; of those that read as none, the first."""
        world = self.client.ranks.world(())
        try:
            sets = [parse(with_group(name)).select(world) for name in names]
        except RankSetError:
            return names[0]
        return self.client.ranks.fold({id for ids in sets for id in ids})

    # Driving

    @property
    def drives(self) -> bool:
        """Whether the agent is attached as a debugger."""
        return self.breakpoints is not None

    async def drive(self) -> Breakpoints:
        """Become a debugger; ranks that wait stop at their first line."""
        async with self._joining:
            if self.breakpoints is None:
                rows = await self.rows("all")
                # A launcher may have none yet. What has been driven is behind its first line.
                wait = not self._has_driven and all(row["state"] == WAITING for row in rows)
                self._has_driven = True
                entry = self.session.entry if wait else {}
                stops = {path: [{"line": line}] for path, line in entry.items()}
                await self._change(await self._ways.join(self.session, stops))
                self.breakpoints = Breakpoints(self.client)
                self.breakpoints.folders = tuple(str(Path(path).parent) for path in entry)
                self.breakpoints.stop_first(entry)
                await self.breakpoints.begin()
            return self.breakpoints

    async def let_go(self) -> bool:
        """Leave off driving; return whether that released the ranks, as the last client does."""
        async with self._joining:
            if self.breakpoints is None:
                return False
            driver, self.breakpoints = self.client, None
            await self._change(await self._ways.observe(self.session), close=False)
            return await driver.disconnect()

    async def _change(self, client: SessionClient, *, close: bool = True) -> None:
        before, self.client = self.client, client
        client.on_output.append(self.output)
        if close:
            await before.close()

    async def close(self) -> None:
        """Leave the session."""
        with suppress(DapMuxError, OSError):
            if self.drives:
                await self.client.disconnect()
        await self.client.close()


def chosen(ranks: str) -> str:
    """Return a rank set as requests take it. Raises RankSetError."""
    return with_group(ranks or "all")


def _where(row: Row) -> Body:
    code = row["exitCode"]
    place = f"{PurePath(row['path']).name}:{row['line']}" if row["path"] else ""
    return {
        "place": place,
        "function": row["function"] or "",
        "path": row["path"] or "",
        "reason": str(row["reason"] or "") or ("" if code is None else f"exit code {code}"),
    }


class Links:
    """All sessions of an agent, by their addresses; `default` is the one that it has started.

    `idle_s`: so long after its last call it drives no longer; None: the pipe shows its end.
    """

    def __init__(self, ways: Ways, default: str = "", idle_s: float | None = None) -> None:
        self.default = default
        self._idle_s = idle_s
        self._calls = 0
        self._expiry: asyncio.Task[None] | None = None
        self._ways = ways
        self._links: dict[str, Link] = {}
        self._opening = asyncio.Lock()

    async def of(self, session: str) -> Link:
        """Return the link to a session, "" for the only one. Raises what `find` does."""
        async with self._opening:  # of two calls at once, one connects
            return await self._of(session or self.default)

    async def _of(self, name: str) -> Link:
        try:
            file = find(name or None)
        except NothingToConnect:
            known = [*self._links.values()]
            if not known or (name and name not in self._links):
                raise
            return self._links[name] if name else known[-1]  # ended: its output is still there
        link = self._links.get(file.address)
        if link is None or link.client.ended.is_set():
            known_output = link.printed if link else Printed()
            if link is not None:
                await link.close()
            link = Link(self._ways, file, await self._ways.observe(file), known_output)
            self._links[file.address] = link
        return link

    @property
    def all(self) -> list[Link]:
        """Those that the agent has used."""
        return [*self._links.values()]

    @staticmethod
    def names() -> list[str]:
        """Return what `session` may be."""
        return [each.address for each in running()]

    @contextmanager
    def called(self) -> Iterator[None]:
        """Note a call while it lasts: none runs out of time."""
        self._calls += 1
        if self._expiry is not None:
            self._expiry.cancel()
        try:
            yield
        finally:
            self._calls -= 1
            if self._idle_s is not None and not self._calls:
                self._expiry = asyncio.get_running_loop().create_task(self._expire(self._idle_s))

    async def _expire(self, idle_s: float) -> None:
        await asyncio.sleep(idle_s)
        for link in self.all:
            with suppress(DapMuxError, OSError):
                if link.drives:
                    # A call that comes now must not end it half way.
                    await asyncio.shield(asyncio.ensure_future(link.let_go()))
                    link.notices.append(f"no call for {idle_s:g} s: the lease has ended")

    async def close(self) -> None:
        """Leave all sessions: where nobody else debugs, the ranks run on."""
        if self._expiry is not None:
            self._expiry.cancel()
        for link in self.all:
            await link.close()
