"""Where a rank is, as pdb shows it, with the lines around."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from dap_mux.client import RequestFailed
from dap_mux.console.session_client import SessionClient
from dap_mux.rank_rows import Row
from dap_mux.user_files import open_regular


async def describe_location(client: SessionClient, row: Row, context_lines: int) -> str:
    """Return `> path(line)function()`, then the source line with the lines around it."""
    if row["line"] is None:
        return f"(location unknown: {row['reason'] or row['state']})"
    head = f"> {row['path']}({row['line']}){row['function']}()"
    lines = await source_lines(client, row)
    number = int(row["line"])
    if not 0 < number <= len(lines):
        return head
    if not context_lines:
        return f"{head}\n-> {lines[number - 1].strip()}"
    first, last = max(1, number - context_lines), min(len(lines), number + context_lines)
    shown = (
        f"{at:4} {'->' if at == number else '  '} {lines[at - 1]}".rstrip()
        for at in range(first, last + 1)
    )
    return "\n".join((head, *shown))


async def source_lines(client: SessionClient, row: Row) -> list[str]:
    """Return the lines of the file a rank is in: read here, else from the rank; maybe none."""
    try:
        text = await asyncio.to_thread(_read_text, Path(row["path"]))
    except (OSError, ValueError):
        text = await _from_rank(client, row)
    return text.splitlines()


def _read_text(path: Path) -> str:
    """Read a regular file only: the path comes from the rank, and may be anything here."""
    with open_regular(path) as file:
        return file.read().decode("utf-8", "replace")


async def _from_rank(client: SessionClient, row: Row) -> str:
    try:
        top = {"threadId": row["threadId"], "levels": 1}
        frames: list[dict[str, Any]] = (await client.request("stackTrace", top))["stackFrames"]
        source = frames[0]["source"]
        arguments = {"source": source, "sourceReference": source.get("sourceReference", 0)}
        return str((await client.request("source", arguments))["content"])
    except (RequestFailed, LookupError):
        return ""
