"""Joins the session that runs, and the next one when that has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias

from dap_mux.client import DapClient, RequestFailed
from dap_mux.errors import DapMuxError
from dap_mux.lsp.picture import Picture
from dap_mux.lsp.watch import Watch
from dap_mux.session_files import SessionFile

LOOK: Final = 2.0  # s between two looks for a session
LONGEST: Final = 30.0  # s between two tries of one that does not let us in
MOMENT: Final = 0.05  # s within which changes are told once
PATIENCE: Final = 5.0  # s for an answer of the session itself
EVENTS: Final = ("ranks", "breakpoints")
Body: TypeAlias = dict[str, Any]
Join: TypeAlias = Callable[[SessionFile], AbstractAsyncContextManager[DapClient]]
log = logging.getLogger(__name__)


class Following:
    """The session of the moment, and what is known of it.

    `join` is the way in as an observer that hears `EVENTS`. `changed` is called when the picture
    or the `breakpoints` (as in the request) are others, several changes within a moment being one.
    """

    def __init__(self, join: Join, changed: Callable[[], None]) -> None:
        self.watch = Watch()
        self.picture = Picture()
        self.breakpoints: list[Body] = []
        self.session: SessionFile | None = None
        self._join = join
        self._changed = changed
        self._client: DapClient | None = None
        self._again = asyncio.Event()
        self._telling: asyncio.TimerHandle | None = None
        self._doubts = asyncio.Event()  # the breakpoints may be others now
        self._heard: list[list[Body]] = []  # changes of ranks that came before we have drawn any

    async def run(self) -> None:
        """Follow sessions until cancelled. Never raises: an editor keeps its language server."""
        pause = LOOK
        while True:
            self._again.clear()
            joined = await self._visit()
            pause = LOOK if joined is not False else min(2 * pause, LONGEST)
            again = asyncio.ensure_future(self._again.wait())
            try:
                await asyncio.wait({again}, timeout=pause)
            finally:
                again.cancel()

    async def prefer(self, session: str | None) -> None:
        """Follow this session from now on; None for whichever runs."""
        if session == self.watch.wanted:
            return
        self.watch.wanted = session
        self._again.set()
        if self._client is not None:
            await self._client.close()

    async def ask(self, command: str, arguments: Mapping[str, Any], limit: float) -> Body | None:
        """Ask the session; None where there is none, or no answer within `limit` seconds."""
        if self._client is None:
            return None
        try:
            return await self._client.request(command, arguments, timeout=limit)
        except (DapMuxError, OSError, TimeoutError) as error:
            log.info("%s: %s", command, error)
            return None

    async def _visit(self) -> bool | None:
        """Be in the session that is there, if any, until it ends; False where that failed."""
        try:
            session = self.watch.look()
            if session is None:
                return None
            async with self._join(session) as client:
                await self._stay(session, client)
        except (DapMuxError, OSError, TimeoutError) as error:
            log.info("%s", error)
            return self._left()
        return self._left()

    async def _stay(self, session: SessionFile, client: DapClient) -> None:
        self._heard.clear()
        client.on_event.append(self._hear)
        body = await client.request("list", timeout=PATIENCE)
        if self._again.is_set():
            return  # another one is preferred meanwhile
        self.picture.draw(body["ranks"])
        for changed in self._heard:  # what came right behind the list is newer
            self.picture.change(changed)
        self.session, self._client = session, client
        self._tell()
        self._doubts.set()
        while client.open:
            await client.wait_for(self._doubted, timeout=None)
            self._doubts.clear()
            await self._see_breakpoints(client)

    async def _see_breakpoints(self, client: DapClient) -> None:
        """What was known of them stays while a busy session owes the answer: it is asked again."""
        try:
            told = await client.request("breakpoints", timeout=PATIENCE)
        except TimeoutError as error:
            log.info("%s", error)
            self._doubts.set()
            return
        except RequestFailed:  # older sessions do not know it
            told = {"breakpoints": []}
        self.breakpoints = told["breakpoints"]
        self._tell()

    def _doubted(self) -> bool:
        return self._doubts.is_set()

    def _left(self) -> bool:
        was_in = self._client is not None
        self.session, self._client = None, None
        self.picture.draw(())
        self.breakpoints = []
        if was_in:
            self._tell()
        return was_in

    def _hear(self, event: Body) -> None:
        if event["event"] == "ranks" and self._client is None:
            self._heard.append(event["body"]["changed"])
        elif event["event"] == "ranks":
            self.picture.change(event["body"]["changed"])
            self._tell()
        elif event["event"] == "breakpoints":
            self._doubts.set()
        if self._client is not None:
            self._client.events.clear()  # nobody waits for one, and a session may last for days

    def _tell(self) -> None:
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(MOMENT, self._told)

    def _told(self) -> None:
        self._telling = None
        self._changed()
