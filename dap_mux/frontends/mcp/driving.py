"""The tools that start, stop and move ranks; a call that is repeated does nothing twice."""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from dap_mux.frontends.console.breakpoints import find_file
from dap_mux.frontends.console.session_client import is_exception, settled
from dap_mux.frontends.mcp import job_log
from dap_mux.frontends.mcp.answers import Body, Unable
from dap_mux.frontends.mcp.left_behind import check_none_is_left
from dap_mux.frontends.mcp.link import Link, Links, chosen
from dap_mux.frontends.mcp.looking import ends_of
from dap_mux.pure.errors import DapMuxError, UsageError
from dap_mux.pure.rank_sets.rank_rows import Row, id_of
from dap_mux.system.session_files import find, session_folder
from dap_mux.system.user_files import open_regular

MAX_WAIT_S: Final = 25.0
"""A client gives up after 30 s."""
LATER_S: Final = 1.5
"""So long after the last rank has stopped it is the turn of the agent, though others still run."""
START_S: Final = 20.0
LOOK_S: Final = 0.05
MAX_DONE: Final = 256
WORDS: Final = {"continue": "c", "next": "n", "step": "s", "return": "r", "until": "unt"}
Move = Literal["continue", "next", "step", "return", "until", "pause"]


class Driving:
    """Each method is a tool; its docstring is what the agent reads."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._done: dict[str, asyncio.Task[Body]] = {}

    async def _once(self, request_id: str, act: Callable[[], Coroutine[Any, Any, Body]]) -> Body:
        """Do it, or return what the call with the same id has done or is doing.

        A client that gives up does not end it: the call that it repeats finds the result. What was
        refused before anything was done may be tried again.
        """
        task = self._done.get(request_id)
        if task is None or (task.done() and isinstance(task.exception(), Unable | UsageError)):
            task = self._done[request_id] = asyncio.get_running_loop().create_task(act())
            while len(self._done) > MAX_DONE:
                del self._done[next(iter(self._done))]
        return await asyncio.shield(task)

    async def start(
        self,
        command: list[str],
        request_id: str,
        ranks: int = 0,
        attach: bool = False,
        folder: str = "",
    ) -> Body:
        """Start a job under the debugger; ranks stop at the first line, where that is known.

        `command`: a launcher's line, `["torchrun", "--nproc-per-node", "4", "train.py"]`; with
        `ranks` a script and its arguments; with `attach` endpoints of ranks, `["pid:4711"]`.
        """
        return await self._once(
            f"start {request_id}", lambda: self._start(command, ranks, attach, folder)
        )

    async def _start(self, command: list[str], ranks: int, attach: bool, folder: str) -> Body:
        if not command:
            raise UsageError("command: a launcher's line, a script, or endpoints")
        words = ["attach"] if attach else ["run", "-n", str(ranks)] if ranks else ["run"]
        launcher = [] if attach or ranks else ["--"]
        line = [sys.executable, "-m", "dap_mux", *words, "--listen", "127.0.0.1:0"]
        process, keeper, log = await _launched([*line, *launcher, *command], folder)
        file = session_folder() / f"{process.pid}.json"
        await _until(lambda: file.exists() or process.returncode is not None, START_S)
        if not file.exists():
            await _until(lambda: keeper.returncode is not None, LATER_S)
            text = (await asyncio.to_thread(Path(log).read_text, "utf-8", "replace"))[-1000:]
            raise Unable("not-started", f"exit code {process.returncode}: {text}", [log])
        session = find(str(file))
        self._links.default = session.address
        link = await self._links.of(session.address)
        await link.drive()
        young = not (attach or ranks)
        stands = await (
            _waited(link, "all", START_S, young=True) if young else _report(link, "all")
        )
        return {"session": session.address, "pid": process.pid, "log": log, **stands}

    async def breakpoints(
        self,
        action: Literal["list", "set", "clear"] = "list",
        place: str = "",
        near: str = "",
        condition: str = "",
        hits: str = "",
        log: str = "",
        mode: Literal["", "each", "together", "differ"] = "",
        ranks: str = "",
        session: str = "",
    ) -> Body:
        """Breakpoints of the agent: `list`, `set` one, `clear` (its `place`, number or `all`).

        `place`: FILE:LINE or FUNCTION; with `near`, a part of the line's text, FILE or FILE:LINE.
        One that is set there for the same `ranks` is replaced.
        `condition` is Python, `hits` a count such as `> 5`, `log` a message with {expressions}
        instead of a stop. `mode`: `together` stops once all ranks are there, `differ` where
        `condition` differs between ranks.
        """
        link = await self._links.of(session)
        if action == "list":
            return {"breakpoints": (await link.ask("breakpoints", {}))["breakpoints"]}
        if not place:
            raise UsageError(f"{action}: needs `place`")
        kept = await link.drive()
        if action == "clear":
            gone = await kept.clear(place)
            return {"cleared": [str(one) for one in gone]}
        rows = await link.rows(ranks or "all")
        place = _near(place, near, rows, kept.folders) if near else place
        ids = frozenset((row["group"], row["rank"]) for row in rows) if ranks else frozenset()
        more = {"hits": hits, "log": log, "mode": mode}
        spec = f"{place}, {condition}" if condition else place
        one = await kept.add(spec, rows, ids, temporary=False, alone=True, **more)
        return {"number": one.number, "breakpoint": str(one), "problem": one.message}

    async def go(
        self,
        action: Move,
        request_id: str,
        ranks: str = "",
        place: str = "",
        watch: list[str] | None = None,
        wait: float = 10.0,
        anyway: bool = False,
        session: str = "",
    ) -> Body:
        """Move ranks, and wait up to `wait` seconds (25 at most) until they are stopped again.

        `ranks`: those that are stopped, if not given; `pause`: all. `until` runs to `place`
        (FILE:LINE). `watch`: expressions shown at this and every later stop. Move all ranks of a
        collective together: what would leave stopped ones behind is refused unless `anyway`.
        """

        async def act() -> Body:
            link = await self._links.of(session)
            await (await link.drive()).begin(WORDS.get(action, ""))
            if taker := (await link.ask("lease", {}))["lostTo"]:
                raise Unable(
                    "lease-lost", f"{taker} has taken over: `lease` takes it back", ["lease"]
                )
            wanted = ranks or ("all" if action == "pause" else "stopped")
            rows = await link.rows(wanted)
            if not rows:
                raise Unable("no-ranks", f"no rank is in {wanted}", ["status", "wait_for_stop"])
            if not anyway:
                await check_none_is_left(link, rows, action)
            if watch is not None:
                link.watches = dict.fromkeys(watch, "")
            named = link.client.ranks.fold([id_of(row)[:2] for row in rows])
            command = f"{WORDS.get(action, action)} {_full(place, rows)}".strip()
            body = await link.ask("cast", {"ranks": chosen(named), "command": command})
            refused = {"refused": body["errors"]} if body["errors"] else {}
            return {**refused, **await _waited(link, named, wait)}

        return await self._once(f"go {request_id}", act)

    async def wait_for_stop(
        self, ranks: str = "all", wait: float = 25.0, session: str = ""
    ) -> Body:
        """Wait until ranks are stopped or have ended: who is there, who is not and where they are.

        `still running` after `wait` seconds (25 at most) is an answer: call again, or ask `why`.
        """
        link = await self._links.of(session)
        await link.debugged(ranks)
        return await _waited(link, ranks, wait)

    async def lease(
        self, action: Literal["take", "release", "show"] = "show", session: str = ""
    ) -> Body:
        """Attach as a debugger and drive (`take`), or leave (`release`): ranks run on then.

        `start` and `go` take it by themselves. A person who moves a rank takes it over: the next
        answer says so in `notices`, and `go` is refused until this tool takes the lease again.
        """
        link = await self._links.of(session)
        if action == "release":
            return {"agent": "looks", "released": await link.let_go()}
        if action == "take":
            await link.drive()
            held = await link.ask("lease", {"action": "take"})
            return {"agent": "drives", "lease": held, **await _report(link, "all")}
        return {"agent": "drives" if link.drives else "looks", "lease": await link.ask("lease", {})}


async def _launched(line: Sequence[str], folder: str) -> tuple[Process, Process, str]:
    """Start a job, and what keeps the last part of its log; both outlive the agent."""
    handle, log = tempfile.mkstemp(prefix="dap-mux-agent-", suffix=".log")
    os.close(handle)
    start = functools.partial(asyncio.create_subprocess_exec, start_new_session=True)
    reads, writes = os.pipe()
    try:
        keeper = await start(
            sys.executable, "-I", job_log.__file__, log, stdin=reads, stdout=DEVNULL, stderr=DEVNULL
        )
        process = await start(
            *line, cwd=folder or None, stdin=DEVNULL, stdout=writes, stderr=writes
        )
    finally:
        os.close(reads)
        os.close(writes)
    return process, keeper, log


async def _until(holds: Callable[[], bool], limit: float) -> None:
    """Return once it holds, or after `limit` seconds."""
    end = time.monotonic() + limit
    while not holds() and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)  # a new file wakes nobody


def _full(place: str, rows: Sequence[Row]) -> str:
    """Return FILE:LINE with the file's full path."""
    file, colon, line = place.rpartition(":")
    return f"{find_file(file, rows) or file}:{line}" if colon else place


def _near(place: str, near: str, rows: Sequence[Row], folders: Sequence[str]) -> str:
    """Return FILE:LINE of the line with this text, the nearest one to a given line."""
    head, _, tail = place.rpartition(":")
    name, line = (head, int(tail)) if head and tail.isdecimal() else (place, 0)
    path = find_file(name, rows, folders)
    if not path:
        raise UsageError(f"{name}: no such file here")
    with open_regular(Path(path)) as file:
        texts = file.read().decode("utf-8", "replace").splitlines()
    found = [number for number, text in enumerate(texts, 1) if near in text]
    if not found or (len(found) > 1 and not line):
        options = [f"{path}:{number}" for number in found[:8]]
        raise Unable("which-line", f"{len(found)} lines of {path} contain {near!r}", options)
    return f"{path}:{min(found, key=lambda number: abs(number - line))}"


async def _waited(link: Link, ranks: str, wait: float, *, young: bool = False) -> Body:
    """Wait for stops, and report. `young`: a launcher may still start ranks."""
    end = time.monotonic() + min(max(wait, 0.0), MAX_WAIT_S)
    while not link.client.ended.is_set():
        rows = await link.rows(ranks)
        there = [row for row in rows if settled(row) or row["state"] == "exited"]
        late = end - time.monotonic()
        if (len(there) == len(rows) and not young) or late <= 0:
            break
        if any(map(settled, there)):
            late = min(late, LATER_S)
        try:
            await asyncio.wait_for(link.client.wait_for_change(), late)
        except asyncio.TimeoutError:
            break
    return await _report(link, ranks)


async def _report(link: Link, ranks: str) -> Body:
    """Return who is stopped and who is not, where they are, and the watches."""
    rows = await link.rows(ranks)
    stopped = [row for row in rows if settled(row)]
    others = [row for row in rows if not settled(row)]
    ended = all(row["state"] == "exited" for row in rows)
    body: Body = {
        "state": "stopped" if stopped else "ended" if ended else "still running",
        "stopped": link.folded(stopped),
        "others": link.folded(others),
        "printed": link.printed.last,
    }
    held = [row for row in stopped if is_exception(row)]
    if held:
        body["exception"] = await link.client.exception_text(held[0])
    if stopped and link.watches:
        here = link.client.ranks.fold([id_of(row)[:2] for row in stopped])
        body["watches"] = [await _watched(link, each, here) for each in [*link.watches]]
    running = [row for row in others if row["state"] == "running"]
    if running:
        body["running"] = await _places(link, running)
    return body


async def _watched(link: Link, expression: str, ranks: str) -> Body:
    """Return an expression's values, whether they differ, and whether they have changed."""
    try:
        body = await link.ask("compare", {"expression": expression, "ranks": chosen(ranks)})
    except DapMuxError as error:
        return {"expression": expression, "error": str(error)}
    values = [{"ranks": one["ranks"], "value": one["value"]} for one in body["values"]]
    before, link.watches[expression] = link.watches[expression], repr(values)
    changed = bool(before) and before != repr(values)
    more = {"errors": body["errors"]} if body["errors"] else {}
    return {
        "expression": expression,
        "changed": changed,
        "differs": len(values) > 1,
        "outliers": body["outliers"],
        "values": values,
        **more,
    }


async def _places(link: Link, rows: Sequence[Row]) -> list[Body]:
    """Return where running ranks are, of the program's own code; nobody is paused."""
    named = link.client.ranks.fold([id_of(row)[:2] for row in rows])
    try:
        body = await link.ask("stacks", {"ranks": chosen(named)})
    except DapMuxError:
        return []
    main = [end for thread in body["threads"] for end in ends_of(thread)]
    return [{"ranks": at, "place": stack[0]} for at, _, stack in main if stack]
