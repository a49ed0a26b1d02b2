"""Finds the running session and joins it, and the next one when that has ended."""

from __future__ import annotations

import asyncio
import logging
import os.path
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dap_mux.client import DapClient, RequestFailed
from dap_mux.pure.endpoint import Backoff
from dap_mux.pure.rank_sets.rank_rows import KeptRows, Row, id_of
from dap_mux.pure.rank_sets.world import DebuggeeId, label, rank_of
from dap_mux.system.session_files import SessionFile, find, running

# The state of a session's ranks: where they are stopped, by file and line.

LIVE: Final = frozenset({"running", "pausing", "stopped"})
DEFAULT_GROUP: Final = "job"
LineNow: TypeAlias = Callable[[int, float], int | None]
"""Where a line is in the editor's text that a rank runs which has then started."""


def unmoved(line: int, _started: float) -> int:
    """A text that was not edited."""
    return line


@dataclass(frozen=True)
class StoppedRanks:
    """Ranks and workers stopped at one line (1-based) of one file, and why.

    `path`: the file as the session names it. `shown`: the line in the editor's text.
    """

    path: str
    line: int
    shown: int
    ids: tuple[DebuggeeId, ...]
    reasons: tuple[str, ...]

    @property
    def label(self) -> str:
        """`0-3,7`."""
        return label(self.ids, DEFAULT_GROUP)


class RankState:
    """Rows as in `list`, kept up to date.

    `kept`: the rows. `revision` counts the changes of where ranks are stopped, and of which ranks
    are live.
    """

    def __init__(self) -> None:
        self.revision = 0
        self.kept = KeptRows()
        self._started: dict[DebuggeeId, float] = {}

    def replace(self, rows: Iterable[Row], started: float = 0.0) -> None:
        """Replace all rows; `started`: when these ranks did, in seconds since the epoch."""
        before = _places(self.kept.all)
        self.kept.replace(list(rows))
        self._start(before, started)

    def update(self, rows: Iterable[Row]) -> None:
        """Apply changed rows."""
        before = _places(self.kept.all)
        for old, new in self.kept.update(rows):
            if old is None or old["pid"] != new["pid"]:
                self._started.pop(id_of(new), None)
        self._start(before, time.time())

    def _start(self, before: Mapping[DebuggeeId, object], now: float) -> None:
        self._started = {id: self._started.get(id, now) for id in self.kept.all}
        self.revision += _places(self.kept.all) != before

    def stopped_in(self, path: str, line_now: LineNow = unmoved) -> list[StoppedRanks]:
        """Return where ranks are stopped in a file, by line; lines that are gone are left out."""
        file = same_file(path)
        found: dict[tuple[int, int], dict[DebuggeeId, Row]] = {}
        for id, row in sorted(self.kept.all.items()):
            if _is_stopped(row) and same_file(row["path"]) == file:
                shown = line_now(row["line"], self._started[id])
                if shown is not None:
                    found.setdefault((shown, row["line"]), {})[id] = row
        return [_stopped_ranks(*lines, rows) for lines, rows in sorted(found.items())]

    def ranks_elsewhere(self, standing: StoppedRanks) -> str:
        """Return the live ranks that are not stopped there, as a rank set; "" for none."""
        here = {rank_of(id) for id in standing.ids}
        others = {rank_of(id) for id, row in self.kept.all.items() if row["state"] in LIVE} - here
        return self.kept.fold(others)

    def hosts(self) -> list[str]:
        """Return the names of all hosts."""
        return sorted({row["host"] for row in self.kept.all.values() if row["host"]})


@lru_cache(maxsize=4096)
def same_file(path: str) -> str:
    """Return a canonical path, to compare paths by."""
    return os.path.normcase(os.path.realpath(path))


def _places(rows: Mapping[DebuggeeId, Row]) -> Mapping[DebuggeeId, object]:
    return {
        id: (row["path"], row["line"], row["reason"]) if _is_stopped(row) else None
        for id, row in rows.items()
        if row["state"] in LIVE
    }


def _is_stopped(row: Row) -> bool:
    return bool(row["state"] == "stopped" and row["path"] and row["line"])


def _stopped_ranks(shown: int, line: int, rows: Mapping[DebuggeeId, Row]) -> StoppedRanks:
    reasons = dict.fromkeys(row["reason"] or "stopped" for row in rows.values())
    path = next(iter(rows.values()))["path"]
    return StoppedRanks(path, line, shown, tuple(rows), tuple(reasons))


RETRIES: Final = Backoff(first=2.0, longest=30.0)  # without a failure it is the poll interval
COALESCE_WINDOW_S: Final = 0.05  # changes within it are reported once
REQUEST_TIMEOUT_S: Final = 5.0
EVENTS: Final = ("ranks", "breakpoints")
Body: TypeAlias = dict[str, Any]
Join: TypeAlias = Callable[[SessionFile], AbstractAsyncContextManager[DapClient]]
log = logging.getLogger(__name__)

ONLY: Final = "only"


@dataclass(frozen=True)
class Wanted:
    """The session to find: HOST:PORT, a session file, None for the newest one, or `ONLY`.

    `ONLY`: the one that runs, and none while several do. `token`: for a session whose file is not
    on this machine.
    """

    session: str | None = None
    token: str | None = field(default=None, repr=False)

    def look(self) -> SessionFile | None:
        """Return the session that is running now. Raises NothingToConnect, Refused, UsageError."""
        if self.session and self.session != ONLY:
            return find(self.session).with_token(self.token)
        sessions = running()  # 2 ms (measured), where the next look is 2 s later
        if not sessions or (self.session == ONLY and len(sessions) > 1):
            return None
        return sessions[-1]


def _opened(session: SessionFile) -> float:
    """Return when a session was opened; now where that is not known.

    Its file's time is exact, and `started` to a second only: a program is often saved in the
    second before it is run.
    """
    try:
        return session.path().stat().st_mtime
    except OSError:
        return time.time()


class SessionFollower:
    """The session that is followed, and the state of its ranks and breakpoints.

    `join` joins a session as an observer that receives `EVENTS`. `changed` is called when `ranks`
    or `breakpoints` (as in the request) have changed, once for each coalescing window.
    """

    def __init__(self, join: Join, changed: Callable[[], None]) -> None:
        self.wanted = Wanted()
        self.ranks = RankState()
        self.breakpoints: list[Body] = []
        self.session: SessionFile | None = None
        self._join = join
        self._changed = changed
        self._client: DapClient | None = None
        self._again = asyncio.Event()
        self._notify_timer: asyncio.TimerHandle | None = None
        self._stale_breakpoints = asyncio.Event()
        self._early_changes: list[list[Body]] = []  # received before the first list

    async def run(self) -> None:
        """Follow sessions until cancelled. Never raises: an editor keeps its language server."""
        failures = 0
        while True:
            self._again.clear()
            joined = await self._visit()
            failures = failures + 1 if joined is False else 0
            again = asyncio.ensure_future(self._again.wait())
            try:
                await asyncio.wait({again}, timeout=RETRIES.delay(failures))
            finally:
                again.cancel()

    async def prefer(self, wanted: Wanted) -> None:
        """Follow this session from now on."""
        if wanted == self.wanted:
            return
        self.wanted = wanted
        self._again.set()
        if self._client is not None:
            await self._client.close()

    async def request(
        self, command: str, arguments: Mapping[str, Any], timeout_s: float
    ) -> Body | None:
        """Send a request; None without a session, or without a response in time."""
        if self._client is None:
            return None
        try:
            return await self._client.request(command, arguments, timeout=timeout_s)
        except Exception as error:  # noqa: BLE001 - see `_visit`
            log.info("%s: %s", command, error)
            return None

    async def _visit(self) -> bool | None:
        """Stay in the running session, if any, until it ends; False if joining failed."""
        try:
            session = self.wanted.look()
            if session is None:
                return None
            async with self._join(session) as client:
                await self._stay(session, client)
        except Exception as error:  # noqa: BLE001 - whatever it says, the next one is followed
            log.info("%s: %s", type(error).__name__, error)
            return self._left()
        return self._left()

    async def _stay(self, session: SessionFile, client: DapClient) -> None:
        self._early_changes.clear()
        client.on_event.append(self._on_event)
        body = await client.request("list", timeout=REQUEST_TIMEOUT_S)
        if self._again.is_set():
            return  # another session is preferred by now
        self.ranks.replace(body["ranks"], _opened(session))
        for changed in self._early_changes:  # newer than the list
            self.ranks.update(changed)
        self.session, self._client = session, client
        self._schedule_notify()
        self._stale_breakpoints.set()
        only = self.wanted.session == ONLY  # then another session may end the stay
        while client.open and (not only or self.wanted.look() == session):
            with suppress(TimeoutError):
                await client.wait_for(
                    self._stale_breakpoints.is_set, timeout=RETRIES.first if only else None
                )
                self._stale_breakpoints.clear()
                await self._fetch_breakpoints(client)

    async def _fetch_breakpoints(self, client: DapClient) -> None:
        """Request the breakpoints; keep those known and retry if the session is busy."""
        try:
            told = await client.request("breakpoints", timeout=REQUEST_TIMEOUT_S)
        except TimeoutError as error:
            log.info("%s", error)
            self._stale_breakpoints.set()
            return
        except RequestFailed:  # not supported by older sessions
            told = {"breakpoints": []}
        self.breakpoints = told["breakpoints"]
        self._schedule_notify()

    def _left(self) -> bool:
        was_in = self._client is not None
        self.session, self._client = None, None
        self.ranks.replace(())
        self.breakpoints = []
        if was_in:
            self._schedule_notify()
        return was_in

    def _on_event(self, event: Body) -> None:
        if event["event"] == "ranks" and self._client is None:
            self._early_changes.append(event["body"]["changed"])
        elif event["event"] == "ranks":
            self.ranks.update(event["body"]["changed"])
            self._schedule_notify()
        elif event["event"] == "breakpoints":
            self._stale_breakpoints.set()
        if self._client is not None:
            self._client.events.clear()  # unused, and a session may last for days

    def _schedule_notify(self) -> None:
        if self._notify_timer is None:
            self._notify_timer = asyncio.get_running_loop().call_later(
                COALESCE_WINDOW_S, self._notify
            )

    def _notify(self) -> None:
        self._notify_timer = None
        self._changed()
