"""A session at one moment: states, stacks, frames, variables and values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import anyio
import msgspec
from msgspec.structs import replace

from dap_mux.frontends.console.session_client import (
    SessionClient,
    is_exception,
    settled,
    stacks_in,
    stopped_rows,
)
from dap_mux.frontends.report.report_file import At, Body, Failure, Frame, Stop, Thread, Variable
from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.why.evidence import is_library
from dap_mux.pure.protocol.rank_messages import CURRENT_FRAME, exception_name
from dap_mux.pure.rank_sets import RankSetError, parse, with_group
from dap_mux.pure.rank_sets.rank_rows import Row, id_of
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.rank.redaction import kind_of

MAX_FRAMES: Final = 40
MAX_SHOWN: Final = 5
"""Frames of the program's own whose variables are read."""
MAX_CHILDREN: Final = 20
MAX_LEFT: Final = 400
"""Variables of a rank; a long value counts as several."""
MAX_VARIABLES: Final = 6400
"""Variables of all ranks; with many ranks each has fewer."""
LONG: Final = 400
MAX_SOURCES: Final = 100
LIMIT_S: Final = 20.0
CONTAINERS: Final = frozenset({"dict", "list", "tuple", "set", "frozenset", "Namespace"})
"""Others might run code of the program to show what is in them."""
GROUPS: Final = frozenset(
    f"{kind} variables" for kind in ("special", "function", "class", "protected")
)


class Look:
    """Looks at a session through its client, and keeps the sources of the frames that it saw."""

    def __init__(self, client: SessionClient, expressions: Sequence[str] = ()) -> None:
        self.texts: dict[str, str] = {}
        self._client = client
        self._expressions = expressions

    async def at_now(self, after_s: float, title: str = "", why: Body | None = None) -> Stop:
        """Return what is seen now; nobody is paused."""
        rows = [*self._client.ranks.all.values()]
        stopped = stopped_rows(rows)
        named = self.named(stopped) if stopped and not why else "all"
        stacks = await self._asked("stacks", {"ranks": "all"})
        compared = {
            each: {
                "expression": each,
                **await self._asked("compare", {"expression": each, "ranks": named}),
            }
            for each in self._expressions
        }
        held = [row for row in stopped if settled(row)]
        places = await self._of_all(held)
        running = self._running(stacks)
        seen = {
            id_of(row): places.get(id_of(row)) or _outside(row, running.get(id_of(row), ()))
            for row in rows
        }
        for expression, body in compared.items():
            for one in body.get("values", ()):
                for id in self._ids(one["ranks"]) & seen.keys():
                    values = {**seen[id].values, expression: one["value"]}
                    seen[id] = replace(seen[id], values=values)
        await self._read_sources(seen.values())
        title = title or "; ".join(self._client.ranks.announcements([(None, row) for row in held]))
        return Stop(after_s, title, self._folded(seen), compared, stacks, why or {})

    def named(self, rows: Sequence[Row]) -> str:
        """Return rows as a rank set that requests take."""
        return with_group(self._client.ranks.fold({id_of(row)[:2] for row in rows}))

    async def _asked(self, command: str, arguments: Mapping[str, Any]) -> Body:
        """Return a response; where there is none what there is instead of it."""
        try:
            return await self._client.request(command, arguments, timeout_s=LIMIT_S)
        except DapMuxError as error:
            return {"errors": [{"ranks": "", "message": str(error)}]}

    async def _of_all(self, rows: Sequence[Row]) -> dict[DebuggeeId, At]:
        """Look into stopped ranks, all at once."""
        found: dict[DebuggeeId, At] = {}
        left = min(MAX_LEFT, MAX_VARIABLES // max(len(rows), 1))

        async def add(row: Row) -> None:
            with suppress(DapMuxError, KeyError, TypeError, ValueError):
                found[id_of(row)] = await _Rank(self._client.request, left).at(row)

        with anyio.move_on_after(LIMIT_S):
            async with anyio.create_task_group() as tasks:
                for row in rows:
                    tasks.start_soon(add, row)
        return found

    def _ids(self, ranks: str) -> set[DebuggeeId]:
        try:
            return {*parse(with_group(ranks)).select(self._client.ranks.world(()))}
        except RankSetError:
            return set()

    def _running(self, stacks: Body) -> dict[DebuggeeId, tuple[Thread, ...]]:
        found: dict[DebuggeeId, tuple[Thread, ...]] = {}
        for thread in stacks.get("threads", ()):
            for end, frames in stacks_in(thread["branches"]):
                one = Thread(thread["name"], tuple(map(_frame, reversed(frames[-MAX_FRAMES:]))))
                for id in self._ids(end["ends"]):
                    found[id] = (*found.get(id, ()), one)
        return found

    def _folded(self, seen: Mapping[DebuggeeId, At]) -> tuple[At, ...]:
        """Return what was seen, equal ranks together."""
        alike = grouped((msgspec.json.encode(one), id) for id, one in seen.items())
        fold = self._client.ranks.fold
        return tuple(replace(seen[ids[0]], ranks=fold(ids)) for ids in alike.values())

    async def _read_sources(self, seen: Any) -> None:
        frames = (frame for at in seen for thread in at.threads for frame in thread.frames)
        for path in dict.fromkeys(each.path for each in frames if not each.library):
            if path and path not in self.texts and len(self.texts) < MAX_SOURCES:
                with suppress(DapMuxError):
                    self.texts[path] = await self._client.source_text(path)


def _frame(body: Body) -> Frame:
    return Frame(body["name"], body["path"], body["line"], library=bool(body["library"]))


def _outside(row: Row, threads: tuple[Thread, ...]) -> At:
    """Return what is known of a rank that is not stopped."""
    code = row["exitCode"]
    reason = str(row["reason"] or "") or ("" if code is None else f"exit code {code}")
    return At("", str(row["state"]), reason, threads=threads)


class _Rank:
    """Reads one stopped rank; `left`: how many variables of it."""

    def __init__(self, request: Callable[..., Awaitable[Body]], left: int) -> None:
        self._request = request
        self._left = left

    async def at(self, row: Row) -> At:
        asked = {"threadId": row["threadId"]}
        trace = await self._request("stackTrace", {**asked, "levels": MAX_FRAMES})
        frames, shown = [], 0
        for body in trace["stackFrames"][:MAX_FRAMES]:
            path = str((body.get("source") or {}).get("path") or "")
            library = is_library(path)
            own: tuple[Variable, ...] = ()
            if not library and shown < MAX_SHOWN:
                shown += 1
                own = await self._locals(body["id"])
            name = str(body["name"]).removesuffix(CURRENT_FRAME)
            frames.append(Frame(name, path, int(body["line"]), own, library))
        thread = Thread("MainThread", tuple(frames))
        failure = await self._failure(asked) if is_exception(row) else None
        return At("", str(row["state"]), str(row["reason"]), "", (thread,), failure)

    async def _failure(self, asked: Mapping[str, Any]) -> Failure:
        body = await self._request("exceptionInfo", asked)
        trace = str((body.get("details") or {}).get("stackTrace") or "")
        text = str(body.get("description") or "")
        kind = exception_name(str(body.get("exceptionId") or ""))
        return Failure(kind, text, trace.replace(CURRENT_FRAME, ""))

    async def _locals(self, frame: int) -> tuple[Variable, ...]:
        scopes = (await self._request("scopes", {"frameId": frame}))["scopes"]
        first = scopes[0]["variablesReference"] if scopes else 0
        return await self._variables(first, MAX_LEFT, deep=True)

    async def _variables(self, reference: int, most: int, *, deep: bool) -> tuple[Variable, ...]:
        if not reference or self._left <= 0:
            return ()
        body = await self._request("variables", {"variablesReference": reference})
        own = (each for each in body["variables"] if each["name"] not in GROUPS)
        shown = [each for each in own if each.get("type") != "module"][:most]
        found = []
        for each in shown[: max(self._left, 0)]:
            name, value, kind = str(each["name"]), str(each["value"]), str(each.get("type") or "")
            self._left -= 1 + len(value) // LONG
            inside: tuple[Variable, ...] = ()
            if deep and kind in CONTAINERS and not kind_of(name):
                reference = int(each.get("variablesReference") or 0)
                inside = await self._variables(reference, MAX_CHILDREN, deep=False)
            found.append(Variable(name, value, kind, inside))
        return tuple(found)
