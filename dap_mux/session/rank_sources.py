"""Ranks named by the words of `attach`: found, made reachable, and followed while they live.

Some words spell ranks out (`host:5678`); behind the others is a source, which is asked who there
is and watched from then on: the engine hears of ranks that come later, move, start again or end,
and of ways to them (tunnels) that are down or up again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import anyio
from anyio.abc import TaskGroup

from dap_mux.cluster.endpoints import NamedRanks, number, read_endpoint
from dap_mux.cluster.rank_registry import RankRegistry, id_of
from dap_mux.cluster.records import DEFAULT_GROUP, RankRecord
from dap_mux.cluster.source import OnReached, Reached, ReportingSource, Source
from dap_mux.engine import inputs
from dap_mux.errors import DapMuxError
from dap_mux.session.session import Session

RETRY_DELAY_S: Final = 5.0  # s after a source could not see its ranks
ROUTE_OPENING: Final = "the way to {} is being opened"


class RankSources:
    """The ranks of an attach. `of` finds those that are there now, `run` follows them."""

    def __init__(self, named: Sequence[NamedRanks], records: Sequence[RankRecord]) -> None:
        self.records = list(records)
        """Who is there at the beginning, each with its number, as their own place names them."""
        self.groups = sorted(
            {one.group for one in records}
            | {one.group or DEFAULT_GROUP for one in named if one.source and not one.records}
        )
        self._plain = [one for each in named if not each.source for one in each.records]
        self._roll = RankRegistry()
        self._roll.enter(None, self._plain)
        self._followed = [
            _FollowedSource(one, one.source, self._roll) for one in named if one.source
        ]

    @classmethod
    async def of(cls, words: Iterable[str]) -> RankSources:
        """Read the words and ask every source. Raises `DapMuxError`."""
        named = [await _asked(read_endpoint(word)) for word in words]
        records = number(record for one in named for record in one.records)
        rest = iter(records)
        numbered = [replace(one, records=[next(rest) for _ in one.records]) for one in named]
        return cls(numbered, records)

    @property
    def local_ports(self) -> range:
        """The span of ports that may be ranks' own here."""
        ports = [record.port for record in self._plain]
        return range(min(ports), max(ports) + 1) if ports else range(0)

    @property
    def lingers(self) -> float:
        """How long the session waits after its last rank (`Source.lingers`)."""
        return max((one.lingers for one in self._followed), default=0.0)

    def announce_ranks(self, session: Session) -> None:
        """Tell the engine who is there."""
        session.expect(len(self._plain) + sum(one.size for one in self._followed))
        session.known(self._plain)
        for one in self._followed:
            one.announce_ranks(session)

    async def run(self, session: Session) -> None:
        """Follow every source until cancelled."""

        def over() -> None:
            if all(one.over for one in self._followed if one.lingers):
                session.driver.feed(inputs.JobEnded(None))

        async with anyio.create_task_group() as tasks:
            for one in self._followed:
                tasks.start_soon(one.run, session, over)


async def _asked(named: NamedRanks) -> NamedRanks:
    if named.source is None:
        return named
    return replace(named, records=named.grouped(await named.source.discover()))


class _FollowedSource:
    """One word with a source: its ranks, host by host."""

    def __init__(self, named: NamedRanks, source: Source, roll: RankRegistry) -> None:
        self._named = named
        self._source = source
        self._roll = roll
        self._hosts: dict[str, _HostRoute] = {}
        self._told: set[str] = set()
        self.lingers = source.lingers
        self.over = False
        self._records = roll.enter(self, named.records)

    @property
    def size(self) -> int:
        """How many ranks there are now."""
        return len(self._records)

    def announce_ranks(self, session: Session) -> None:
        for record in self._records:
            down = record.waits or ROUTE_OPENING.format(record.host)
            session.known([record], down=down, host_name=record.host)
        self._report(session)
        if not self._records:
            session.tell(f"{self._named.word}: no ranks yet; dap-mux waits for them")

    async def run(self, session: Session, over: Callable[[], None]) -> None:
        async with anyio.create_task_group() as tasks:
            self._reach(session, tasks)
            while True:
                try:
                    async for records in self._source.watch():
                        self._told.clear()
                        self._report(session)
                        self._now(session, self._named.grouped(records))
                        self._reach(session, tasks)
                        self.over = bool(self.lingers and not records)
                        if self.over:
                            over()
                except DapMuxError as error:
                    self._once(session, f"{self._named.word}: {error}; asked again")
                await anyio.sleep(RETRY_DELAY_S)

    def _now(self, session: Session, records: Sequence[RankRecord]) -> None:
        """These are the ranks: the engine hears of the new ones, the waiting and the ended."""
        before = {id_of(record): record for record in self._records}
        self._records, problems = self._roll.update(self, records)
        for problem in problems:
            self._once(session, f"{self._named.word}: {problem}")
        for record in self._records:
            old = before.pop(id_of(record), None)
            if old != record:
                down = record.waits or ROUTE_OPENING.format(record.host)
                session.known([record], down=down, host_name=record.host)
        for id, record in before.items():
            source = self._source
            code = source.exit_code(record) if isinstance(source, ReportingSource) else None
            session.driver.feed(inputs.RankExited(id, code))

    def _reach(self, session: Session, tasks: TaskGroup) -> None:
        """Have one way open for each host, for the ranks that are there."""
        wanted: dict[str, list[RankRecord]] = {}
        for record in self._records:
            if not record.waits:
                wanted.setdefault(record.host, []).append(record)
        for name in {*self._hosts, *wanted}:
            records, host = wanted.get(name, []), self._hosts.get(name)
            if host and host.records == records:
                continue
            if host:
                host.scope.cancel()
            self._hosts[name] = new = _HostRoute(name, records, after=host)
            tasks.start_soon(new.run, self._source, session)

    def _report(self, session: Session) -> None:
        if isinstance(self._source, ReportingSource):
            for text in self._source.notices():
                session.tell(f"{self._named.word}: {text}")

    def _once(self, session: Session, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            session.tell(text)


class _HostRoute:
    """The way to the ranks of one host, `after` the one that was open before is closed."""

    def __init__(self, name: str, records: Sequence[RankRecord], after: _HostRoute | None) -> None:
        self.name = name
        self.records = records
        self.scope = anyio.CancelScope()
        self._after = after
        self._closed = anyio.Event()

    async def run(self, source: Source, session: Session) -> None:
        try:
            if self._after:
                await self._after.closed()
                self._after = None
            with self.scope:
                await self._open(source, session)
        finally:
            self._closed.set()

    async def closed(self) -> None:
        """Wait until nothing of it is open any more."""
        await self._closed.wait()

    async def _open(self, source: Source, session: Session) -> None:
        if not self.records:
            return

        def changed(reached: Reached) -> None:
            if not self.scope.cancel_called:
                session.known([reached.record], down=reached.down, host_name=self.name)

        while True:
            problem = await self._hold(source, session, changed)
            session.tell(f"{self.name}: {problem}; tried again")
            for record in self.records:
                changed(Reached(record=record, down=problem))
            await anyio.sleep(RETRY_DELAY_S)

    async def _hold(self, source: Source, session: Session, changed: OnReached) -> str:
        """Keep the way open until cancelled; return why there is none."""
        problem = "closed"
        try:
            async with source.reach(self.records, changed, session.tell):
                await anyio.sleep_forever()
        except DapMuxError as error:
            problem = str(error)
        return problem
