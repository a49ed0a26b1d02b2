"""The ranks behind the endpoints of `attach`: found, made reachable, and followed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from dap_mux.cluster.endpoints import NamedRanks, number, read_endpoint
from dap_mux.cluster.records import DEFAULT_GROUP, RankRecord
from dap_mux.cluster.source import (
    PauseAwareSource,
    Reached,
    ReportingSource,
    Source,
    SwallowingSource,
)
from dap_mux.engine import inputs
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.grouping import grouped
from dap_mux.pure.rank_sets import RankId
from dap_mux.session.session import Session

RETRY_DELAY_S: Final = 5.0  # after a source has failed
ROUTE_OPENING: Final = "connecting to {}"


# Some endpoints spell ranks out (`host:5678`). The others name a source, which is asked for its
# ranks and watched from then on: the engine hears of ranks that appear, move, restart or end, and
# of tunnels that go down and come back.
class RankSources:
    """The ranks of an attach. `of` finds the present ones, `run` follows all changes."""

    def __init__(self, named: Sequence[NamedRanks], records: Sequence[RankRecord]) -> None:
        self.records = list(records)
        """The ranks present at the beginning, numbered; addresses are those of the source."""
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
    async def of(cls, endpoints: Iterable[str], python: Path | None = None) -> RankSources:
        """Read the endpoints and ask every source. Raises `DapMuxError`.

        `python`: that of the job, for engines that are asked by it.
        """
        named = [await _discovered(read_endpoint(endpoint, python)) for endpoint in endpoints]
        records = number(record for one in named for record in one.records)
        rest = iter(records)
        numbered = [replace(one, records=[next(rest) for _ in one.records]) for one in named]
        return cls(numbered, records)

    @classmethod
    async def of_source(cls, named: NamedRanks) -> RankSources:
        """Ask one source. Raises `DapMuxError`."""
        found = await _discovered(named)
        return cls([found], found.records)

    @property
    def local_ports(self) -> range:
        """The range of ports that ranks of this machine may use."""
        ports = [record.port for record in self._plain]
        return range(min(ports), max(ports) + 1) if ports else range(0)

    @property
    def swallows_exceptions(self) -> bool:
        """Whether the framework of any of them does (`SwallowingSource`)."""
        return any(one.swallows_exceptions for one in self._followed)

    @property
    def lingers(self) -> float:
        """How long the session waits after its last rank (`Source.lingers`)."""
        return max((one.lingers for one in self._followed), default=0.0)

    def announce_ranks(self, session: Session) -> None:
        """Tell the engine which ranks there are."""
        session.expect(len(self._plain) + sum(one.size for one in self._followed))
        session.known(self._plain)
        for one in self._followed:
            one.announce_ranks(session)

    async def run(self, session: Session, ended: Callable[[], None] | None = None) -> None:
        """Follow every source until cancelled.

        `ended` is called once all have ended that rule the session's end; it ends by default.
        """

        def over() -> None:
            if all(one.over for one in self._followed if one.lingers):
                (ended or end_session)()

        def end_session() -> None:
            session.driver.feed(inputs.JobEnded(None))

        async with anyio.create_task_group() as tasks:
            for one in self._followed:
                tasks.start_soon(one.run, session, over)


async def _discovered(named: NamedRanks) -> NamedRanks:
    if named.source is None:
        return named
    return replace(named, records=named.grouped(await named.source.discover()))


class _FollowedSource:
    """One endpoint with a source: its ranks, host by host."""

    def __init__(self, named: NamedRanks, source: Source, roll: RankRegistry) -> None:
        self._named = named
        self._source = source
        self._roll = roll
        self._hosts: dict[str, _HostRoute] = {}
        self._told: set[str] = set()
        self.lingers = source.lingers
        self.swallows_exceptions = (
            isinstance(source, SwallowingSource) and source.swallows_exceptions
        )
        self.over = False
        self._records = roll.enter(self, named.records)

    @property
    def size(self) -> int:
        """The number of ranks now."""
        return len(self._records)

    def announce_ranks(self, session: Session) -> None:
        for record in self._records:
            down = record.waits or ROUTE_OPENING.format(record.host)
            session.known([record], down=down, host_name=record.host)
        self._report(session)
        if not self._records:
            session.tell(f"{self._named.word}: no ranks yet; waiting for them")

    async def run(self, session: Session, over: Callable[[], None]) -> None:
        if isinstance(self._source, PauseAwareSource):
            session.driver.watch_pauses(self._source)
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
                    self._once(session, f"{self._named.word}: {error}; retrying")
                await anyio.sleep(RETRY_DELAY_S)

    def _now(self, session: Session, records: Sequence[RankRecord]) -> None:
        """Tell the engine which ranks are new, waiting or ended."""
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
        """Keep one route open to each host that has ranks."""
        wanted = grouped((record.host, record) for record in self._records if not record.waits)
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


@dataclass(eq=False)
class _HostRoute:
    """The route to the ranks of one host, opened once the previous one (`after`) is closed."""

    name: str
    records: Sequence[RankRecord]
    after: _HostRoute | None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    closed: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, source: Source, session: Session) -> None:
        try:
            if self.after:
                await self.after.closed.wait()
                self.after = None  # or each route would keep all before it
            with self.scope:
                await self._open(source, session)
        finally:
            self.closed.set()

    async def _open(self, source: Source, session: Session) -> None:
        if not self.records:
            return

        def changed(reached: Reached) -> None:
            if not self.scope.cancel_called:
                session.known([reached.record], down=reached.down, host_name=self.name)

        while True:
            problem = "closed"
            try:
                async with source.reach(self.records, changed, session.tell):
                    await anyio.sleep_forever()
            except DapMuxError as error:
                problem = str(error)
            session.tell(f"{self.name}: {problem}; retrying")
            for record in self.records:
                changed(Reached(record=record, down=problem))
            await anyio.sleep(RETRY_DELAY_S)


# Numbers for ranks that appear and disappear: stable, and never used twice.


def id_of(record: RankRecord) -> RankId:
    """Return the id of a numbered rank: group and number."""
    assert record.rank is not None
    return record.group, record.rank


@dataclass
class RankRegistry:
    """The present ranks, by owner (an endpoint of the command line)."""

    _present: dict[RankId, tuple[Hashable, RankRecord]] = field(default_factory=dict)

    def enter(self, owner: Hashable, records: Sequence[RankRecord]) -> list[RankRecord]:
        """Add numbered ranks, which are without duplicates."""
        return self.update(owner, records)[0]

    def update(
        self, owner: Hashable, records: Iterable[RankRecord]
    ) -> tuple[list[RankRecord], list[str]]:
        """Replace an owner's ranks; return them numbered, and the problems of those left out.

        A rank without a number keeps the one that its address had, or gets the lowest free one:
        that of a missing rank, if it has come in its place.
        """
        before = {(r.host, r.port): id for id, (who, r) in self._present.items() if who == owner}
        self._present = {id: held for id, held in self._present.items() if held[0] != owner}
        problems = []
        records = list(records)
        for record in records:
            known = before.get((record.host, record.port))
            if record.rank is None and known and known[0] == record.group:
                record = replace(record, rank=known[1])  # noqa: PLW2901  (its old number)
            if record.rank is not None:
                problems += self._place(owner, record)
        placed = {(r.host, r.port) for who, r in self._present.values() if who == owner}
        for record in records:
            if record.rank is None and (record.host, record.port) not in placed:
                problems += self._place(owner, replace(record, rank=self._free(record.group)))
        return [record for who, record in self._present.values() if who == owner], problems

    def _free(self, group: str) -> int:
        return next(number for number in count() if (group, number) not in self._present)

    def _place(self, owner: Hashable, record: RankRecord) -> list[str]:
        _, other = self._present.setdefault(id_of(record), (owner, record))
        if other is record:
            return []
        where = f"{other.endpoint} and {record.endpoint}"
        name = f"rank {record.rank} of group {record.group}"
        return [f"duplicate {name}: {where}; the second is ignored"]
