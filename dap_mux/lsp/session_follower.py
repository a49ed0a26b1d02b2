"""Joins the running session, and the next one when that has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final, TypeAlias

from dap_mux.backoff import Backoff
from dap_mux.client import DapClient, RequestFailed
from dap_mux.lsp.rank_state import RankState
from dap_mux.lsp.session_watch import ONLY, SessionWatch, Wanted
from dap_mux.session_files import SessionFile

RETRIES: Final = Backoff(first=2.0, longest=30.0)  # without a failure it is the poll interval
COALESCE_WINDOW_S: Final = 0.05  # changes within it are reported once
REQUEST_TIMEOUT_S: Final = 5.0
EVENTS: Final = ("ranks", "breakpoints")
Body: TypeAlias = dict[str, Any]
Join: TypeAlias = Callable[[SessionFile], AbstractAsyncContextManager[DapClient]]
log = logging.getLogger(__name__)


class SessionFollower:
    """The session that is followed, and the state of its ranks and breakpoints.

    `join` joins a session as an observer that receives `EVENTS`. `changed` is called when `ranks`
    or `breakpoints` (as in the request) have changed, once for each coalescing window.
    """

    def __init__(self, join: Join, changed: Callable[[], None]) -> None:
        self.watch = SessionWatch()
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
        if wanted == self.watch.wanted:
            return
        self.watch.wanted = wanted
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
            session = self.watch.look()
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
        self.ranks.replace(body["ranks"], self.watch.opened(session))
        for changed in self._early_changes:  # newer than the list
            self.ranks.update(changed)
        self.session, self._client = session, client
        self._schedule_notify()
        self._stale_breakpoints.set()
        only = self.watch.wanted.session == ONLY  # then another session may end the stay
        while client.open and (not only or self.watch.look() == session):
            with suppress(TimeoutError):
                await client.wait_for(
                    self._breakpoints_stale, timeout=RETRIES.first if only else None
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

    def _breakpoints_stale(self) -> bool:
        return self._stale_breakpoints.is_set()

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
