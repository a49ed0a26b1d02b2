"""A console's connection to its session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias

from dap_mux.client import ConnectionLost, DapClient, RequestFailed
from dap_mux.client.client import DEFAULT_FILTERS, default_filters
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.printable import one_line
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.rank_sets.rank_rows import Change, KeptRows, Row, id_of
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.system.user_files import read_regular

# The state of each rank as a console knows it, and which changes its user should hear of.


class RankTracker(KeptRows):
    """The rows by rank, and what is said about them."""

    @property
    def rows(self) -> dict[RankId, Row]:
        """The rows of ranks, without their workers."""
        mains = (row for row in self.all.values() if row["worker"] is None)
        return {(row["group"], row["rank"]): row for row in mains}

    def name(self, ranks: Iterable[DebuggeeId]) -> str:
        """Return `rank 3`, `ranks 0-3,7`, or with several groups `ranks trainer:0-3; eval:0`.

        Worker 1 of rank 3 is `rank 3/1`.
        """
        ranks = list(ranks)
        return f"{'rank' if len(ranks) == 1 else 'ranks'} {self.fold(ranks)}"

    def counts(self) -> str:
        """Return `12 stopped, 4 running`."""
        states = [row["state"] for row in self.all.values()]
        order = sorted(set(states), key=lambda state: (state != "stopped", state))
        return ", ".join(f"{states.count(state)} {state}" for state in order)

    def announcements(self, changes: Iterable[Change]) -> list[str]:
        """Return one line for each kind of change: ranks that stopped, were lost or ended."""
        ranks_by_event: dict[str, list[DebuggeeId]] = {}
        for before, now in changes:
            event = describe_event(now)
            again = before is not None and before["state"] == now["state"] == "exited"
            if event and not again and (before is None or event != describe_event(before)):
                ranks_by_event.setdefault(event, []).append(id_of(now))
        return [f"{self.name(ranks)} {event}" for event, ranks in ranks_by_event.items()]


def settled(row: Row) -> bool:
    """Whether the rank is stopped, and its location is known."""
    return row["state"] == "stopped" and row["reason"] is not None


def is_exception(row: Row) -> bool:
    """Whether an exception has stopped the rank."""
    return settled(row) and str(row["reason"]).startswith("exception")


def stacks_in(
    branches: Sequence[Mapping[str, Any]], outer: Sequence[Any] = ()
) -> Iterator[tuple[Mapping[str, Any], list[Any]]]:
    """Yield where stacks end in an answer of `stacks`, and their frames from the outermost on."""
    for branch in branches:
        frames = [*outer, *branch["frames"]]
        if branch["ends"]:
            yield branch, frames
        yield from stacks_in(branch["branches"], frames)


def stopped_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that the rank set `stopped` selects: of ranks, and of their workers."""
    rows = list(rows)
    mains = (row for row in rows if row["worker"] is None and row["state"] == "stopped")
    ranks = {(row["group"], row["rank"]) for row in mains}
    return [row for row in rows if (row["group"], row["rank"]) in ranks]


def short_location(row: Row) -> str:
    """Return `train.py:41`, or "" while it is unknown."""
    return f"{PurePath(row['path']).name}:{row['line']}" if row["path"] else ""


def place(row: Row) -> str:
    """Return `train.py:31 batch_of`, or "" while it is unknown."""
    return f"{short_location(row)} {row['function'] or ''}".strip() if row["path"] else ""


def describe_event(row: Row) -> str:
    """Describe what has happened to the rank; "" if there is nothing to announce."""
    if settled(row):
        where = f" at {short_location(row)}" if short_location(row) else ""
        return f"stopped{where} ({row['reason']})"
    if row["state"] == "lost":
        return "lost" + (f": {row['reason']}" if row["reason"] else "")
    if row["state"] == "exited" and row["worker"] is None:
        code = row["exitCode"]
        return "ended" if code is None else f"ended with exit code {code}"
    return ""


DEFAULT_TIMEOUT_S: Final = 10.0
LIVE: Final = ("stopped", "running", "pausing")
FILTERS_KEY: Final = "exceptionBreakpointFilters"
BreakpointsByPath: TypeAlias = Mapping[str, list[dict[str, Any]]]


class SessionClient:
    """A DAP client of a session, and the state of its ranks, which events keep up to date.

    `address` names the session in messages.
    """

    def __init__(self, client: DapClient, address: str) -> None:
        self.address = address
        self.ranks = RankTracker()
        self.ended = asyncio.Event()  # the session or its connection has ended
        self.end_reason = ""
        self.agent = ""
        """What a coding agent does that drives the session, `stepping 0-3`; "" if none does."""
        self.on_change: list[Callable[[list[Change]], None]] = []
        """Called where ranks have changed, or the session has ended."""
        self.on_output: list[Callable[[dict[str, Any]], None]] = []
        """Called with what the session or a rank has printed."""
        self._dap = client
        self._changed = asyncio.Event()
        self._attached = False
        self._exceptions = True
        self._filters: list[str] = []  # exception filters that debuggers stop at by default
        self._own_filters: set[str] = set()
        self._dap.on_event.append(self._on_event)

    async def request(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        take: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Send a request and return the response's body.

        `take` is called with the body before any message behind it is handled.
        Raises RequestFailed (a refusal), DapMuxError (no response, or the session has ended).
        """
        try:
            return await self._dap.request(command, arguments, timeout=timeout_s, take=take)
        except TimeoutError as error:
            raise DapMuxError(f"{self.address} did not respond: {error}") from error
        except ConnectionLost:
            self._end("the connection to the session was lost")
            raise

    async def list_ranks(self, ranks: str = "all", *, workers: bool = False) -> list[Row]:
        """Request the rows of these ranks, and update `self.ranks` with them."""

        def take(body: dict[str, Any]) -> None:
            rows = body["ranks"]
            changes = self.ranks.replace(rows) if ranks == "all" else self.ranks.update(rows)
            self._tell(changes)

        rows: list[Row] = (await self.request("list", {"ranks": ranks}, take=take))["ranks"]
        return [row for row in rows if workers or row["worker"] is None]

    async def wait_for_change(self) -> None:
        """Wait until a rank has changed, or the session has ended."""
        self._changed.clear()
        if not self.ended.is_set():
            await self._changed.wait()

    async def disconnect(self) -> bool:
        """Disconnect; return whether that released the ranks, as the last client does."""
        if self.ended.is_set():
            return False
        try:
            return bool((await self.request("disconnect")).get("released"))
        finally:
            await self._dap.close()

    async def close(self) -> None:
        """Close the connection without a `disconnect`."""
        await self._dap.close()

    async def attach(
        self,
        breakpoints: BreakpointsByPath,
        credentials: Mapping[str, str],
        name: str = "dap-mux console",
        *,
        exceptions: bool = True,
    ) -> None:
        """Attach as a controller, and fetch the ranks. Raises what `DapClient.handshake` does.

        `exceptions`: whether ranks stop at those that a debugger stops at by default.
        """
        self._exceptions = exceptions
        capabilities = await self._dap.handshake(
            {"events": ["ranks", "lease"], "valuesAcrossRanks": "off", **credentials},
            breakpoints=breakpoints,
            exception_filters=DEFAULT_FILTERS if exceptions else (),
            client_id=name,
        )
        self._filters = default_filters(capabilities) if exceptions else []
        await self.follow()

    async def catch(self, name: str, *, on: bool) -> None:
        """Set or remove an exception filter of the session's own: `notFinite` or the like."""
        (self._own_filters.add if on else self._own_filters.discard)(name)
        wanted = {"filters": [*self._filters, *sorted(self._own_filters)]}
        await self.request("setExceptionBreakpoints", wanted)

    async def follow(self) -> None:
        """Keep the rows from now on, and no events; for a client that has attached by itself."""
        self._attached = True
        await self.list_ranks()

    async def exception_text(self, row: Row) -> str:
        """Return `ValueError: shard-3 is truncated` of a stopped rank, "" if it does not tell."""
        try:
            body = await self.request("exceptionInfo", {"threadId": row["threadId"]})
        except RequestFailed:
            return ""
        name = str(body.get("exceptionId") or "").rpartition(".")[2]
        text = str(body.get("description") or "")
        return one_line(f"{name}: {text}" if name and text else name or text)

    async def source_text(self, path: str) -> str:
        """Return the text of a file here, or else as a rank has it. Raises DapMuxError."""
        with suppress(OSError, UnicodeDecodeError):
            return read_regular(Path(path))
        asked = {"source": {"path": path}, "sourceReference": 0, "read": True}
        content = (await self.request("source", asked)).get("content")
        if not isinstance(content, str):
            raise DapMuxError(f"{path}: neither this machine nor a rank has its text")
        return content

    # Events

    def listen(self, handler: Callable[[dict[str, Any]], None]) -> None:
        """Call this with every event from now on."""
        self._dap.on_event.append(handler)

    def _on_event(self, event: dict[str, Any]) -> None:
        body, name = event.get("body", {}), event["event"]
        if self._attached:  # they are handled here; kept, they would fill the memory
            self._dap.events.clear()
        if name == "ranks":
            self._tell(self.ranks.update(body["changed"]))
        elif name == "lease":
            self.agent = (body["act"] or "drives") if body["holder"] else ""
            self._notify([])
        elif name == "output":
            for handler in self.on_output:
                handler(body)
        elif name == "capabilities" and FILTERS_KEY in body.get("capabilities", {}):
            self._filters = default_filters(body["capabilities"]) if self._exceptions else []
            filters = [*self._filters, *sorted(self._own_filters)]
            self._dap.send("setExceptionBreakpoints", {"filters": filters})
        elif name == "terminated":
            gone = all(row["state"] == "exited" for row in self.ranks.rows.values())
            self._end(f"the session has ended{': all ranks are gone' if gone else ''}")

    def _tell(self, changes: list[Change]) -> None:
        if changes:
            self._notify(changes)

    def _notify(self, changes: list[Change]) -> None:
        self._changed.set()
        for handler in self.on_change:
            handler(changes)

    def _end(self, reason: str) -> None:
        if not self.ended.is_set():
            self.end_reason = reason
            self.ended.set()
            self._notify([])
