"""The connection of a console or a one-shot to a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from dap_mux.client import ConnectionLost, DapClient
from dap_mux.console.picture import Change, Picture, Row
from dap_mux.errors import DapMuxError

PATIENCE: Final = 10.0  # s for each answer; a session answers at once
EXCEPTIONS: Final = ("uncaught",)  # post-mortem, as Monarch does by itself
Breakpoints = Mapping[str, list[dict[str, Any]]]


class Link:
    """A client of a session, and the picture that its events keep up to date.

    `address` names the session in messages. The `on_...` are called as things happen.
    """

    def __init__(self, client: DapClient, address: str) -> None:
        self.address = address
        self.picture = Picture()
        self.on_rows: Callable[[list[Change]], None] = lambda changes: None
        self.on_output: Callable[[dict[str, Any]], None] = lambda body: None
        self.over = asyncio.Event()  # the session has ended, or its connection
        self.why_over = ""
        self._client = client
        self._moved = asyncio.Event()
        self._begun = False
        self._client.on_event.append(self._hear)

    async def ask(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        patience: float = PATIENCE,
        take: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Send a request and return the answer's body; `take` has it before what comes behind it.

        Raises RequestFailed (a refusal), DapMuxError (no answer, or the session is gone).
        """
        try:
            return await self._client.request(command, arguments, timeout=patience, take=take)
        except TimeoutError as error:
            raise DapMuxError(f"{self.address} did not answer: {error}") from error
        except ConnectionLost:
            self._end("the session is gone")
            raise

    async def look(self, ranks: str = "all", *, workers: bool = False) -> list[Row]:
        """Ask where these ranks are, and their workers; the picture knows it too."""

        def take(body: dict[str, Any]) -> None:
            if ranks == "all":
                self.picture.forget_all_but(body["ranks"])
            self._take(body["ranks"])

        rows: list[Row] = (await self.ask("list", {"ranks": ranks}, take=take))["ranks"]
        return [row for row in rows if workers or row["worker"] is None]

    async def moved(self) -> None:
        """Wait until the picture has changed, or the session is over."""
        self._moved.clear()
        if not self.over.is_set():
            await self._moved.wait()

    async def leave(self) -> bool:
        """Disconnect; return whether that has released the ranks: nobody else was there."""
        if self.over.is_set():
            return False
        try:
            return bool((await self.ask("disconnect")).get("released"))
        finally:
            await self._client.close()

    async def close(self) -> None:
        """Hang up."""
        await self._client.close()

    async def begin(self, breakpoints: Breakpoints, credentials: Mapping[str, str]) -> None:
        """Attach as one who drives ranks, and learn where they are. Raises as `handshake` does."""
        await self._client.handshake(
            {"events": ["ranks"], **credentials},
            breakpoints=breakpoints,
            exception_filters=EXCEPTIONS,
            client_id="dap-mux console",
        )
        self._begun = True
        await self.look()

    # What comes by itself

    def _hear(self, event: dict[str, Any]) -> None:
        body, name = event.get("body", {}), event["event"]
        if self._begun:  # a long session tells a lot, and nobody looks it up again
            self._client.events.clear()
        if name == "ranks":
            self._take(body["changed"])
        elif name == "output":
            self.on_output(body)
        elif name == "terminated":
            self._end("every rank is gone")

    def _take(self, rows: list[Row]) -> None:
        changes = self.picture.take(rows)
        if changes:
            self._tell(changes)

    def _tell(self, changes: list[Change]) -> None:
        self._moved.set()
        self.on_rows(changes)

    def _end(self, why: str) -> None:
        if not self.over.is_set():
            self.why_over = why
            self.over.set()
            self._tell([])
