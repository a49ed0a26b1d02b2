"""A client of a session over real ranks, in the words of the tests: ranks, rows, values."""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol

from dap_mux.client import DapClient, Json
from dap_mux.engine import Settings
from tests.support.processes.commands import LIMIT, Command, line_of
from tests.support.processes.ranks import Rank
from tests.support.processes.run_command import LAUNCH
from tests.support.session import Session, session

SCRIPTS: Final = Path(__file__).parent / "scripts"
_LOOK_AGAIN: Final = 0.02  # s between two `list` requests
Lines = Mapping[str, Iterable[int | Mapping[str, Any]]]
StartRanks = Callable[..., Awaitable[list[Rank]]]


def script(name: str) -> str:
    """The path of a debuggee in `scripts/`."""
    return str(SCRIPTS / f"{name}.py")


COUNTING: Final = script("until_told")
COUNT: Final = line_of(COUNTING, "count")


def let_end(done: Path) -> None:
    """Programs in `scripts/` run until they see this file, the fixture `done`."""
    done.touch()


async def ends_well(ranks: Sequence[Rank], done: Path) -> None:
    """All run on to their own end."""
    let_end(done)
    assert [await rank.ended() for rank in ranks] == [0] * len(ranks)


class Listening(Protocol):
    """A rank, or a way to one."""

    @property
    def port(self) -> int: ...


class Driver:
    """One controller of a session, configured and ready."""

    def __init__(self, session: Session, client: DapClient) -> None:
        self.session = session
        self.client = client
        self._looked: tuple[int, int] | None = None  # stops seen so far, and the row looked at

    @classmethod
    async def attach(
        cls,
        session: Session,
        *,
        breakpoints: Lines | None = None,
        exceptions: Iterable[str] = (),
        client_id: str = "dap-mux",
        **arguments: Any,
    ) -> Driver:
        """Go through the handshake as most clients do."""
        client = await session.client(client_id)
        attach = {"justMyCode": False, **arguments}
        await client.handshake(
            attach,
            breakpoints=breakpoints,
            exception_filters=exceptions,
            client_id=client_id,
            timeout=LIMIT,
        )
        return cls(session, client)

    # What the session knows

    async def entries(self) -> list[Json]:
        """The entries of `list`, by rank."""
        body = await self.client.request("list", timeout=LIMIT)
        return list(body["ranks"])

    async def until(
        self, holds: Callable[[list[Json]], object], *, within: float = LIMIT, what: str = "this"
    ) -> list[Json]:
        """Ask `list` until its entries satisfy `holds`; return them."""
        deadline = time.monotonic() + within
        while not holds(entries := await self.entries()):
            assert time.monotonic() < deadline, f"{what}: not within {within} s: {brief(entries)}"
            await asyncio.sleep(_LOOK_AGAIN)
        return entries

    async def states(self, *wanted: str, within: float = LIMIT) -> list[Json]:
        """Wait until the ranks are in these states, in order."""
        return await self.until(
            lambda entries: [entry["state"] for entry in entries] == [*wanted],
            within=within,
            what=" ".join(wanted),
        )

    async def stopped(self, line: int, count: int = 4, *, within: float = LIMIT) -> list[Json]:
        """Wait until all `count` ranks are stopped at `line`."""
        return await self.until(
            lambda entries: [entry["line"] for entry in entries] == [line] * count,
            within=within,
            what=f"{count} ranks on line {line}",
        )

    async def live(self, count: int = 1, *, within: float = LIMIT) -> Driver:
        """Wait until `count` ranks are attached: their rows are there (one rank: its threads)."""

        async def rows() -> int:
            return len((await self.client.request("threads", timeout=LIMIT))["threads"])

        deadline = time.monotonic() + within
        while await rows() < count:
            assert time.monotonic() < deadline, f"{count} rows: not within {within} s"
            await asyncio.sleep(_LOOK_AGAIN)
        return self

    def row(self, rank: int) -> int:
        """The thread id of a rank."""
        return self.session.engine.view.id_of(("job", rank))

    # Driving

    async def control(self, command: str, rank: int | None = None, **more: object) -> Json:
        """Send a control request for a rank's row, or for the row that the user is at.

        That it is answered at once, whatever ranks do, is seen in the engine (`CheckedEngine`).
        """
        row = self.focus if rank is None else self.row(rank)
        return await self.client.request(command, {"threadId": row, **more}, timeout=LIMIT)

    @property
    def focus(self) -> int:
        """The row that the user is at: looked at since the last stop, or shown by that."""
        shown = self.stops
        if self._looked and self._looked[0] == len(shown):
            return self._looked[1]
        return shown[-1] if shown else self.row(0)

    @property
    def stops(self) -> list[int]:
        """The rows that stops have shown so far; those that only ask for no jump left out."""
        stops = self.events("stopped")
        return [stop["threadId"] for stop in stops if not stop.get("preserveFocusHint")]

    async def frames(self, rank: int, **more: int) -> list[Json]:
        """The stack of a rank."""
        arguments = {"threadId": self.row(rank), **more}
        body = await self.client.request("stackTrace", arguments, timeout=LIMIT)
        return list(body["stackFrames"])

    async def value(self, rank: int, expression: str) -> str:
        """Evaluate in the top frame of a stopped rank."""
        frame = (await self.frames(rank, levels=1))[0]["id"]
        self._looked = len(self.stops), self.row(rank)
        return await self.evaluate(expression, frameId=frame)

    async def look(self, rank: int) -> None:
        """Click on the top frame of a stopped rank: the user is at it."""
        frame = (await self.frames(rank, levels=1))[0]["id"]
        await self.client.request("scopes", {"frameId": frame}, timeout=LIMIT)
        self._looked = len(self.stops), self.row(rank)

    async def go_on(self) -> None:
        """Let all run on, from wherever the user was."""
        await self.look(next(e["rank"] for e in await self.entries() if e["state"] == "stopped"))
        await self.control("continue")

    async def evaluate(self, expression: str, **more: object) -> str:
        """Evaluate, without a frame where none is given."""
        arguments = {"expression": expression, "context": "watch", **more}
        body = await self.client.request("evaluate", arguments, timeout=LIMIT)
        return str(body["result"])

    async def leave(self) -> None:
        """Disconnect as a well-behaved client does."""
        await self.client.disconnect(timeout=LIMIT)

    async def ends_well(self, ranks: Sequence[Rank], done: Path) -> None:
        """Disconnect; all run on to their own end."""
        await self.leave()
        await ends_well(ranks, done)

    def events(self, name: str) -> list[Json]:
        """The bodies of all events of this name so far."""
        return [e.get("body", {}) for e in self.client.events if e["event"] == name]

    @property
    def output(self) -> str:
        """All output so far, as a user reads it."""
        return "".join(body["output"] for body in self.events("output"))


@asynccontextmanager
async def driving(
    ranks: Sequence[Listening | int],
    breakpoints: Lines | None = None,
    *,
    settings: Settings | None = None,
    ready: bool = True,
    live: int = 0,
    stopped: int = 0,
    **arguments: Any,
) -> AsyncIterator[Driver]:
    """A session over ranks (or what listens on their ports), and its first client.

    `live`: wait for so many rows; `stopped`: until all ranks stand on this line.
    """
    ports = [rank if isinstance(rank, int) else rank.port for rank in ranks]
    async with session(ports, settings=settings, ready=ready) as running:
        driver = await Driver.attach(running, breakpoints=breakpoints, **arguments)
        if live:
            await driver.live(live)
        if stopped:
            await driver.stopped(stopped, len(ports))
        yield driver


async def joined(
    command: Command,
    breakpoints: Lines | None = None,
    *,
    name: str = "client",
    all_answered: bool = True,
    attach: Mapping[str, Any] = LAUNCH,
    **handshake: Any,
) -> DapClient:
    """A client that has attached to the session of a command; see `handshake` for the rest."""
    how = {"timeout": LIMIT, **handshake}
    client = await command.client(name, all_answered=all_answered, within=how["timeout"])
    await client.handshake(attach, breakpoints=breakpoints, **how)
    return client


async def observing(command: Command, name: str = "onlooker") -> DapClient:
    """A client that has no rank attached."""
    client = await command.client(name)
    await client.request("initialize", {"adapterID": "dap-mux"}, timeout=LIMIT)
    await client.request("attach", {"role": "observer"}, timeout=LIMIT)
    return client


def brief(entries: Iterable[Json]) -> list[tuple[object, ...]]:
    """What a person wants to read of `list` when a test fails."""
    return [(e["rank"], e["state"], e["line"], e["reason"]) for e in entries]
