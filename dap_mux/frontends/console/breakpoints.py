"""The breakpoints that this console has set, lines and functions; other clients keep their own."""

from __future__ import annotations

import ast
import asyncio
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Final

from dap_mux.client import RequestFailed
from dap_mux.frontends.console.session_client import LIVE, SessionClient
from dap_mux.frontends.console.words import MOVES
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets import RankId, RankSetError, split_condition
from dap_mux.pure.rank_sets.rank_rows import Row
from dap_mux.pure.rank_sets.world import fold_numbers
from dap_mux.system.user_files import open_regular

USAGE: Final = "break FILE:LINE|LINE|FUNCTION [, CONDITION], or break to list them"
WORDS: Final = ("break", "tbreak", "clear", "disable", "enable", "condition", "ignore")
"""pdb's commands of breakpoints, by their names here."""
_SPEC: Final = re.compile(r"(?:(?P<file>[^,]*[^,\s])\s*:\s*)?(?P<line>\d{1,9})")
_FUNCTION: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
LOOK: Final = (
    "(lambda name, os=__import__('os'), sys=__import__('sys'): [one for one in (os.path.abspath("
    "os.path.join(each, name)) for each in ['.', *sys.path]) if os.path.isfile(one)][:1])"
)
"""In a rank: where it would find a file."""
MAX_FOUND: Final = 4096  # characters of an answer with the places of a file
ASK_S: Final = 5.0
BEGIN_S: Final = 10.0
"""Ranks that wait for a debugger come to their first line within a second of its arrival."""
BEGUN: Final = ("stopped", "exited", "lost")


@dataclass(frozen=True)
class Breakpoint:
    """A line (`path`, `line`) or a function (`name`), in these `ranks`, in all if there are none.

    `condition` may begin with a rank set, too. `hits` is DAP's hit condition, `inside` the
    function that the line is in, `asked` the line that was typed.
    """

    number: int
    path: str = ""
    line: int = 0
    asked: int = 0
    name: str = ""
    condition: str = ""
    ranks: frozenset[RankId] = frozenset()
    hits: str = ""
    temporary: bool = False
    enabled: bool = True
    id: object = None
    message: str = ""
    inside: str = ""
    log: str = ""
    mode: str = ""

    @property
    def place(self) -> str:
        """`train.py:31`, below the current folder; the path elsewhere; or a function."""
        if self.name:
            return f"function {self.name}"
        path = PurePath(self.path)
        here = os.getcwd()  # noqa: PTH109  (no file is looked at)
        shown = path.relative_to(here) if path.is_relative_to(here) else path
        return f"{shown}:{self.line}" + (f" in {self.inside}" if self.inside else "")

    def __str__(self) -> str:
        condition = f", if {self.condition}" if self.condition else ""
        return f"{self.number}: {self.place}{condition}"

    def to_dap(self) -> dict[str, Any]:
        """Return it as a DAP SourceBreakpoint or FunctionBreakpoint."""
        body: dict[str, Any] = {"name": self.name} if self.name else {"line": self.line}
        condition = self.full_condition
        body |= {"condition": condition} if condition else {}
        more = {"hitCondition": self.hits, "logMessage": self.log, "mode": self.mode}
        return body | {key: text for key, text in more.items() if text}

    @property
    def full_condition(self) -> str:
        """The condition with the ranks in front, unless it names ranks itself."""
        prefix = split_condition(self.condition)
        if not self.ranks or prefix.ranks is not None:
            return self.condition
        colon = "" if prefix.barrier or prefix.differ else ":"
        return f"{rank_prefix(self.ranks)}{colon} {self.condition}".rstrip()

    def replaces(self, other: Breakpoint, *, alone: bool) -> bool:
        """Whether it takes the place of another one; `alone`: whatever the other's condition is."""
        same = (self.path, self.name, self.ranks) == (other.path, other.name, other.ranks)
        there = self.line in (other.line, other.asked)
        return same and there and (alone or self.condition == other.condition)

    def stops(self, row: Row) -> bool:
        """Whether a rank that has stopped in this row may have stopped for it."""
        if "breakpoint" not in str(row["reason"]) or not self.enabled:
            return False
        if self.ranks and (row["group"], row["rank"]) not in self.ranks:
            return False
        if self.name:
            return str(row["function"]) == self.name.rpartition(".")[2]
        return (row["path"], row["line"]) == (self.path, self.line)


class Breakpoints:
    """The console's breakpoints, kept because DAP sets all breakpoints of a file at once."""

    def __init__(self, client: SessionClient) -> None:
        self._client = client
        self.all: list[Breakpoint] = []  # in the order in which they were set
        self.folders: tuple[str, ...] = ()  # of the programs that ranks will run
        self._count = 0
        self._first: Mapping[str, int] = {}
        self._is_first = False  # ranks stop at these lines
        self._is_late = False  # some have been waited for, and have not come there
        self._arrived: list[Row] = []  # there, while others are still to come
        self._begun: set[RankId] = set()
        client.listen(self._event)

    def stop_first(self, lines: Mapping[str, int]) -> None:
        """Know the first lines of programs, at which ranks were told to stop for this console."""
        self._first, self._is_first = lines, bool(lines)

    async def begin(self, line: str = "") -> None:
        """Wait until all ranks have come to their first line; none stops there again.

        So a script, or somebody who types ahead, may say `c` as soon as there is a prompt. `line`:
        what ranks are sent. Unless it moves them, those that have not come in time stop there yet:
        torchrun imports torch before it starts any. Raises RequestFailed.
        """
        moves = [*line.split(maxsplit=1), ""][0] in MOVES
        if self._is_first and (moves or not self._is_late):
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._until_begun(), BEGIN_S)
            self._is_late = not self._all_begun()
        if self._is_first and (moves or not self._is_late):
            self._is_first = False
            for path in self._first:
                self.all = await self._send(self.all, path)

    async def _until_begun(self) -> None:
        # A client whose session has ended is always changed: waiting for it would never yield.
        while self._is_first and not self._all_begun() and not self._client.ended.is_set():
            await self._client.wait_for_change()

    def _all_begun(self) -> bool:
        rows = self._client.ranks.rows
        self._begun |= {id for id, row in rows.items() if row["state"] in BEGUN}
        return bool(rows) and self._begun >= {*rows}

    def gathered(self, stops: list[Row]) -> list[Row]:
        """Return the stops to tell of: those at the first line together, the last one's."""
        if not self._is_first:
            return stops
        self._arrived += [row for row in stops if self._is_at_first(row)]
        others = [row for row in stops if not self._is_at_first(row)]
        if not self._all_begun():
            return others
        arrived, self._arrived = self._arrived, []
        return [*arrived, *others]

    def _is_at_first(self, row: Row) -> bool:
        return bool(row["reason"] == "breakpoint" and self._first.get(row["path"]) == row["line"])

    def stopping(self, row: Row) -> str:
        """Return `breakpoint 2` for a rank that has stopped at one, the row's reason otherwise."""
        numbers = [str(each.number) for each in self.all if each.stops(row)]
        if numbers:
            return f"breakpoint {' or '.join(numbers)}"
        return "first line" if self._is_at_first(row) else str(row["reason"])

    async def drop_temporary(self, rows: Iterable[Row]) -> None:
        """Remove the temporary ones at which ranks have stopped."""
        rows = list(rows)
        over = [one for one in self.all if one.temporary and any(map(one.stops, rows))]
        if over:
            await self._put([one for one in self.all if one not in over], over)

    async def add(
        self,
        spec: str,
        rows: Sequence[Row],
        ranks: frozenset[RankId],
        *,
        temporary: bool,
        alone: bool = False,
        **more: Any,
    ) -> Breakpoint:
        """Set one for these ranks, none for all; a bare line is in the file of `rows`.

        `alone`: no other one is kept for its line and ranks. `more`: its `hits`, `log` and `mode`.

        Raises UsageError.
        """
        location, _, condition = (part.strip() for part in spec.partition(","))
        added = replace(
            await self._located(location, rows),
            condition=condition,
            ranks=ranks,
            temporary=temporary,
            **more,
        )
        _ = added.full_condition  # raises where it begins with a wrong rank set
        self._count += 1
        added = replace(added, number=self._count)
        others = [each for each in self.all if not added.replaces(each, alone=alone)]
        await self._put([*others, added], [added])
        return self.all[-1]

    async def _located(self, location: str, rows: Sequence[Row]) -> Breakpoint:
        match = _SPEC.fullmatch(location)
        if match is None:
            if not _FUNCTION.fullmatch(location) or location.endswith(".py"):
                raise UsageError(f"usage: {USAGE}")
            return Breakpoint(0, name=location)
        known = rows if match["file"] is None else self._client.ranks.rows.values()
        path = find_file(match["file"], known, self.folders)
        if not path:
            path = await self._found_by_ranks(match["file"])
        return Breakpoint(0, path, int(match["line"]), int(match["line"]))

    async def _found_by_ranks(self, name: str) -> str:
        """Return where ranks would import or open a file from. Raises UsageError."""
        found: set[str] = set()
        with suppress(RequestFailed):  # no ranks yet
            arguments = {"ranks": "all", "command": f"p {LOOK}({name!r})", "timeout": ASK_S}
            for result in (await self._client.request("cast", arguments))["results"]:
                with suppress(ValueError, SyntaxError, TypeError):
                    found |= {*ast.literal_eval(str(result["value"])[:MAX_FOUND])}
        if len(found) == 1:
            return str(found.pop())
        where = f"ranks would find {len(found)}" if found else "no rank knows one"
        raise UsageError(f"no file {name} here, and {where}: give its full path")

    async def clear(self, spec: str) -> list[Breakpoint]:
        """Remove `N ...`, `FILE:LINE` or `all`; return what was removed. Raises UsageError."""
        removed = self.all if spec == "all" else self._named(spec)
        if not removed:
            raise UsageError("this console has no breakpoints")
        await self._put([each for each in self.all if each not in removed], removed)
        return removed

    async def alter(self, spec: str, **changes: Any) -> list[Breakpoint]:
        """Change some fields of those that `spec` names; return them. Raises UsageError."""
        chosen = self._named(spec)
        altered = {each.number: replace(each, **changes) for each in chosen}
        for one in altered.values():
            if one.condition and one.hits:
                raise UsageError(
                    "debugpy supports a condition or a hit count, not both: clear the other first"
                )
            _ = one.full_condition
        await self._put([altered.get(each.number, each) for each in self.all], chosen)
        return [each for each in self.all if each.number in altered]

    def _named(self, spec: str) -> list[Breakpoint]:
        chosen = []
        for word in spec.split():
            found = [each for each in self.all if _matches(each, word)]
            if not found:
                raise UsageError(f"this console has no breakpoint {word!r}; 'break' lists them")
            chosen += found
        return chosen

    async def _put(self, wanted: list[Breakpoint], changed: Iterable[Breakpoint]) -> None:
        """Make these the console's breakpoints, of which some differ from those that are set.

        Raises RequestFailed, and then sets again what was set.
        """
        paths = {each.path for each in changed}
        try:
            for path in paths:
                wanted = await self._send(wanted, path)
        except BaseException:
            for path in paths:
                await self._send(self.all, path)
            raise
        self.all = wanted

    async def _send(self, wanted: list[Breakpoint], path: str) -> list[Breakpoint]:
        """Send those of one file, "" for functions; return all with what the session says."""
        sent = [each for each in wanted if each.path == path and each.enabled]
        asked = [each.to_dap() for each in sent]
        if self._is_first and path in self._first:
            asked.append({"line": self._first[path]})
        arguments: dict[str, Any] = {"breakpoints": asked}
        arguments |= {"source": {"path": path}} if path else {}
        request = "setBreakpoints" if path else "setFunctionBreakpoints"
        results = (await self._client.request(request, arguments))["breakpoints"][: len(sent)]
        updated = {
            each.number: await asyncio.to_thread(_with_result, each, result)
            for each, result in zip(sent, results, strict=True)
        }
        return [updated.get(each.number, each) for each in wanted]

    def _event(self, event: dict[str, Any]) -> None:
        """Note what the session says of a breakpoint, once more ranks have taken it up."""
        if event["event"] != "breakpoint":
            return
        body = event["body"]["breakpoint"]
        self.all = [
            _with_result(each, body) if each.id is not None and each.id == body.get("id") else each
            for each in self.all
        ]

    def described(self, one: Breakpoint, names: Iterable[tuple[str, str]]) -> str:
        """Return `1: train.py:31 in step, if n == 5   (4 ranks; set before the first line)`."""
        tracker = self._client.ranks
        ranks = split_condition(one.full_condition).ranks
        ids = set(tracker.rows)
        if ranks is not None:
            ids = set()
            with suppress(RankSetError):  # a named set that the console has not heard of
                ids = {*ranks.select(tracker.world(names), strict=False)}
        states = {str(row["state"]) for row in tracker.rows.values()}
        notes = [f"{len(ids)} rank{'s' * (len(ids) != 1)}"]
        if not states & {*LIVE}:
            notes += ["set before the first line"] * (states <= {"waiting", "connecting"})
        elif one.enabled and one.message:
            notes.append(one.message)
        notes += ["temporary"] * one.temporary + ["disabled"] * (not one.enabled)
        notes += [f"after {one.hits.removeprefix('> ')} hits"] if one.hits else []
        return f"{one}   ({'; '.join(notes)})"


def rank_prefix(ids: Iterable[RankId]) -> str:
    """Return `job.ranks(0-3)` for ranks of one group. Raises UsageError."""
    ids = list(ids)
    groups = {id[0] for id in ids}
    if len(groups) != 1:
        raise UsageError("a breakpoint is for ranks of one group, or for all ranks")
    return f"{groups.pop()}.ranks({fold_numbers(id[1] for id in ids)})"


def _matches(breakpoint_: Breakpoint, spec: str) -> bool:
    if spec.isdecimal():
        return breakpoint_.number == int(spec)
    location = breakpoint_.name or f"{breakpoint_.path}:{breakpoint_.line}"
    return location.endswith(spec) and f"/{spec}" in f"/{location}"


def _with_result(breakpoint_: Breakpoint, result: dict[str, Any]) -> Breakpoint:
    line = int(result.get("line") or breakpoint_.line)
    moved = "" if line == breakpoint_.asked else f"line {breakpoint_.asked} has no code"
    unverified = "" if result.get("verified") else "not verified by any rank yet"
    inside = _function_at(breakpoint_.path, line) if breakpoint_.path else ""
    message = str(result.get("message") or moved or unverified)
    return replace(breakpoint_, line=line, inside=inside, id=result.get("id"), message=message)


def _function_at(path: str, line: int) -> str:
    """Return the name of the function that a line of a file here is in, "" if there is none."""
    try:
        with open_regular(Path(path)) as file:
            tree = ast.parse(file.read())
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    names = [
        node.name
        for node in ast.walk(tree)  # from the outside inwards
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.lineno <= line <= (node.end_lineno or 0)
    ]
    return names[-1] if names else ""


def find_file(name: str | None, rows: Iterable[Row], folders: Sequence[str] = ()) -> str:
    """Return the path of a local file, or of one that ranks are in; "" if neither is known.

    `folders`: those of the programs that ranks will run. Raises UsageError.
    """
    paths = sorted({str(row["path"]) for row in rows if row["path"]})
    if name is None:
        if len(paths) == 1:
            return paths[0]
        raise UsageError(f"which file? The ranks are in {len(paths)} different files. {USAGE}")
    if Path(name).is_file():
        return str(Path(name).absolute())
    matches = [
        path
        for path in paths
        if PurePath(path).parts[-len(PurePath(name).parts) :] == PurePath(name).parts
    ]
    if len(matches) == 1 or PurePath(name).is_absolute():
        return matches[0] if matches else name
    if matches:
        raise UsageError(f"no file {name} here, and ranks are in {len(matches)} files of that name")
    # No rank is in it yet: a module lies beside those that import it.
    beside = (str(PurePath(folder) / name) for folder in (*folders, *map(os.path.dirname, paths)))
    found = [path for path in dict.fromkeys(beside) if Path(path).is_file()]
    return found[0] if len(found) == 1 else ""
