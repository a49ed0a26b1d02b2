"""The breakpoints that this console has set; those of other clients are theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from dap_mux.console.link import Link
from dap_mux.console.picture import Row
from dap_mux.errors import UsageError

USAGE = "break FILE:LINE [, CONDITION], break LINE [, CONDITION], or break alone for a list"
_SPEC = re.compile(r"(?:(?P<file>.*\S)\s*:\s*)?(?P<line>\d{1,9})\s*(?:,\s*(?P<condition>.*))?")


@dataclass(frozen=True)
class Breakpoint:
    """One line, and when to stop there; a condition may begin with a rank set."""

    number: int
    path: str
    line: int
    condition: str = ""
    message: str = ""

    def __str__(self) -> str:
        condition = f", {self.condition}" if self.condition else ""
        message = f" ({self.message})" if self.message else ""
        return f"{self.number}: {self.path}:{self.line}{condition}{message}"

    def wanted(self) -> dict[str, Any]:
        """As DAP has it."""
        condition = {"condition": self.condition} if self.condition else {}
        return {"line": self.line, **condition}


class Breakpoints:
    """Kept here, because DAP sets all lines of a file at once."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._set: list[Breakpoint] = []
        self._count = 0

    @property
    def all(self) -> list[Breakpoint]:
        """In the order in which they were set."""
        return list(self._set)

    def remember(self, path: str, line: int) -> None:
        """Know one that was sent when the console came."""
        self._count += 1
        self._set.append(Breakpoint(self._count, path, line))

    async def add(self, spec: str) -> Breakpoint:
        """Set one; return it with what the session says of it. Raises UsageError."""
        path, line, condition = parse(spec, self._link.picture.rows.values())
        self._count += 1
        added = Breakpoint(self._count, path, line, condition)
        others = [
            one
            for one in self._set
            if (one.path, one.line, one.condition) != (path, line, condition)
        ]
        try:
            await self._send([*others, added], path)
        except BaseException:
            await self._send(self._set, path)
            raise
        return self._set[-1]

    async def clear(self, spec: str) -> list[Breakpoint]:
        """Take away `N`, `FILE:LINE` or `all`; return those. Raises UsageError."""
        gone = [one for one in self._set if spec == "all" or self._meant(one, spec)]
        if not gone:
            raise UsageError(f"no breakpoint {spec!r} of this console; 'break' lists them")
        left = [one for one in self._set if one not in gone]
        for path in {one.path for one in gone}:
            await self._send(left, path)
        return gone

    def _meant(self, one: Breakpoint, spec: str) -> bool:
        if spec.isdecimal():
            return one.number == int(spec)
        return f"{one.path}:{one.line}".endswith(spec) and f"/{spec}" in f"/{one.path}:{one.line}"

    async def _send(self, wanted: list[Breakpoint], path: str) -> None:
        here = [one for one in wanted if one.path == path]
        asked = {"source": {"path": path}, "breakpoints": [one.wanted() for one in here]}
        answers = (await self._link.ask("setBreakpoints", asked))["breakpoints"]
        told = {one.number: _told(one, answer) for one, answer in zip(here, answers, strict=True)}
        self._set = [told.get(one.number, one) for one in wanted]


def _told(one: Breakpoint, answer: dict[str, Any]) -> Breakpoint:
    message = answer.get("message") or (
        "" if answer["verified"] else "not verified by any rank yet"
    )
    return Breakpoint(one.number, one.path, answer.get("line", one.line), one.condition, message)


def parse(spec: str, rows: Iterable[Row]) -> tuple[str, int, str]:
    """Read `FILE:LINE, CONDITION`; return path, line, condition. Raises UsageError."""
    match = _SPEC.fullmatch(spec.strip())
    if match is None:
        raise UsageError(f"usage: {USAGE}")
    return find_file(match["file"], rows), int(match["line"]), (match["condition"] or "").strip()


def find_file(name: str | None, rows: Iterable[Row]) -> str:
    """Return the path of a file: one here, or one that ranks are in. Raises UsageError."""
    paths = sorted({str(row["path"]) for row in rows if row["path"]})
    if name is None:
        if len(paths) == 1:
            return paths[0]
        raise UsageError(f"in which file? The ranks are in {len(paths)} files. {USAGE}")
    if Path(name).is_file():
        return str(Path(name).absolute())
    fits = [
        path
        for path in paths
        if PurePath(path).parts[-len(PurePath(name).parts) :] == PurePath(name).parts
    ]
    if len(fits) == 1 or PurePath(name).is_absolute():
        return fits[0] if fits else name
    there = f"ranks stand in {len(fits)} of that name" if fits else "no rank stands in one"
    raise UsageError(f"there is no file {name} here, and {there}")
