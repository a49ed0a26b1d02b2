"""Where a rank stands, as pdb shows it, with the lines around."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from dap_mux.client import RequestFailed
from dap_mux.console.link import Link
from dap_mux.console.picture import Row
from dap_mux.user_files import open_regular


async def where(link: Link, row: Row, around: int) -> str:
    """`> path(line)function()` and the source line; with `around`, that many before and after."""
    if row["line"] is None:
        return f"(no place is known: {row['reason'] or row['state']})"
    head = f"> {row['path']}({row['line']}){row['function']}()"
    lines = await source_lines(link, row)
    number = int(row["line"])
    if not 0 < number <= len(lines):
        return head
    if not around:
        return f"{head}\n-> {lines[number - 1].strip()}"
    first, last = max(1, number - around), min(len(lines), number + around)
    shown = (
        f"{at:4} {'->' if at == number else '  '} {lines[at - 1]}".rstrip()
        for at in range(first, last + 1)
    )
    return "\n".join((head, *shown))


async def source_lines(link: Link, row: Row) -> list[str]:
    """Return the lines of the file a rank is in: from here, or else from the rank; maybe none."""
    try:
        text = await asyncio.to_thread(_text_of, Path(row["path"]))
    except (OSError, ValueError):
        text = await _from_rank(link, row)
    return text.splitlines()


def _text_of(path: Path) -> str:
    """The rank has named it: it may be anything here."""
    with open_regular(path) as file:
        return file.read().decode("utf-8", "replace")


async def _from_rank(link: Link, row: Row) -> str:
    try:
        top = {"threadId": row["threadId"], "levels": 1}
        frames: list[dict[str, Any]] = (await link.ask("stackTrace", top))["stackFrames"]
        source = frames[0]["source"]
        asked = {"source": source, "sourceReference": source.get("sourceReference", 0)}
        return str((await link.ask("source", asked))["content"])
    except (RequestFailed, LookupError):
        return ""
