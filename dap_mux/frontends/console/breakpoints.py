"""The breakpoints that this console has set; other clients keep their own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from dap_mux.frontends.console.session_client import SessionClient
from dap_mux.pure.errors import UsageError
from dap_mux.pure.rank_sets.rank_rows import Row

USAGE = "break FILE:LINE [, CONDITION], break LINE [, CONDITION], or break to list them"
_SPEC = re.compile(r"(?:(?P<file>.*\S)\s*:\s*)?(?P<line>\d{1,9})\s*(?:,\s*(?P<condition>.*))?")


@dataclass(frozen=True)
class Breakpoint:
    """A line and an optional condition, which may begin with a rank set."""

    number: int
    path: str
    line: int
    condition: str = ""
    message: str = ""

    def __str__(self) -> str:
        condition = f", {self.condition}" if self.condition else ""
        message = f" ({self.message})" if self.message else ""
        return f"{self.number}: {self.path}:{self.line}{condition}{message}"

    def to_dap(self) -> dict[str, Any]:
        """Return it as a DAP SourceBreakpoint."""
        condition = {"condition": self.condition} if self.condition else {}
        return {"line": self.line, **condition}


class Breakpoints:
    """The console's breakpoints, kept because DAP sets all breakpoints of a file at once."""

    def __init__(self, client: SessionClient) -> None:
        self._client = client
        self.all: list[Breakpoint] = []  # in the order in which they were set
        self._count = 0

    def remember(self, path: str, line: int) -> None:
        """Add one that was set when the console attached."""
        self._count += 1
        self.all.append(Breakpoint(self._count, path, line))

    async def add(self, spec: str) -> Breakpoint:
        """Set one; return it with the session's message. Raises UsageError."""
        path, line, condition = parse_location(spec, self._client.ranks.rows.values())
        self._count += 1
        added = Breakpoint(self._count, path, line, condition)
        others = [
            each
            for each in self.all
            if (each.path, each.line, each.condition) != (path, line, condition)
        ]
        try:
            await self._send([*others, added], path)
        except BaseException:
            await self._send(self.all, path)
            raise
        return self.all[-1]

    async def clear(self, spec: str) -> list[str]:
        """Remove `N`, `FILE:LINE` or `all`; say what was removed. Raises UsageError."""
        removed = [each for each in self.all if spec == "all" or _matches(each, spec)]
        kept = [each for each in self.all if each not in removed]
        for path in {each.path for each in removed}:
            await self._send(kept, path)
        said = [f"cleared {each}" for each in removed]
        if not spec.isdecimal():  # a number there means another one
            said += await self._clear_at_prompts(spec)
        if not said:
            raise UsageError(f"this console has no breakpoint {spec!r}; 'break' lists them")
        return said

    async def _clear_at_prompts(self, spec: str) -> list[str]:
        """Remove those that were set at a rank's prompt: they are this console's too."""
        command = "clear" if spec == "all" else f"clear {spec}"
        body = await self._client.request("cast", {"ranks": "all", "command": command})
        texts = (str(result["value"]) for result in body["results"])
        return list(dict.fromkeys(line for text in texts for line in text.splitlines()))

    async def _send(self, wanted: list[Breakpoint], path: str) -> None:
        in_file = [each for each in wanted if each.path == path]
        arguments = {"source": {"path": path}, "breakpoints": [each.to_dap() for each in in_file]}
        results = (await self._client.request("setBreakpoints", arguments))["breakpoints"]
        updated = {
            each.number: _with_result(each, result)
            for each, result in zip(in_file, results, strict=True)
        }
        self.all = [updated.get(each.number, each) for each in wanted]


def _matches(breakpoint_: Breakpoint, spec: str) -> bool:
    if spec.isdecimal():
        return breakpoint_.number == int(spec)
    location = f"{breakpoint_.path}:{breakpoint_.line}"
    return location.endswith(spec) and f"/{spec}" in f"/{location}"


def _with_result(breakpoint_: Breakpoint, result: dict[str, Any]) -> Breakpoint:
    line = result.get("line", breakpoint_.line)
    moved = "" if line == breakpoint_.line else f"line {breakpoint_.line} has no code"
    unverified = "" if result["verified"] else "not verified by any rank yet"
    return replace(breakpoint_, line=line, message=result.get("message") or moved or unverified)


def parse_location(spec: str, rows: Iterable[Row]) -> tuple[str, int, str]:
    """Parse `FILE:LINE, CONDITION`; return path, line, condition. Raises UsageError."""
    match = _SPEC.fullmatch(spec.strip())
    if match is None:
        raise UsageError(f"usage: {USAGE}")
    return find_file(match["file"], rows), int(match["line"]), (match["condition"] or "").strip()


def find_file(name: str | None, rows: Iterable[Row]) -> str:
    """Return the path of a local file, or of one that ranks are in. Raises UsageError."""
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
    beside = dict.fromkeys(str(PurePath(path).parent / name) for path in paths)
    found = [path for path in beside if Path(path).is_file()]
    if len(found) == 1:
        return found[0]
    raise UsageError(f"no file {name} here, and no rank is in one yet: give its full path")
