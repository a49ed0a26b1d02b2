"""The language server while it reads."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from tests.bench.figures import Figure, faster
from tests.support.clients.lsp_client import Editor, editor
from tests.support.processes.commands import User

TIMES_FASTER: Final = 5
KEYS: Final = 5


def language_server() -> Iterator[Figure]:
    """The language server's answers beside a launch.json of two megabytes, which it reads
    meanwhile.
    """
    with tempfile.TemporaryDirectory() as folder:
        waits, read = asyncio.run(_measured(User(Path(folder))))
    name = "hints beside a big launch.json, p50"
    yield faster(name, median(waits), read, TIMES_FASTER, "to read it")


async def _measured(user: User) -> tuple[list[float], float]:
    launch = user.folder / ".vscode" / "launch.json"
    launch.parent.mkdir()
    launch.write_text(_big(), "utf-8")
    try:
        async with editor(user) as shown:
            python = shown.open(user.script("x = 1\n"))
            await shown.hints(python)
            start = perf_counter()
            uri = shown.open(launch)
            waits = []
            while uri not in shown.problems:
                waits.append(await _hints(shown, python))
            read = perf_counter() - start
            for _ in range(KEYS):
                shown.insert(uri, 1, " ")
                waits.append(await _hints(shown, python))
            return waits, read
    finally:
        await user.close()


async def _hints(shown: Editor, python: str) -> float:
    start = perf_counter()
    await shown.hints(python)
    return perf_counter() - start


def _big() -> str:
    mapping = {"localRoot": "/a", "remoteRoot": "/b", "ranks": "0-3"}
    entries = [mapping] * 20_000 + [{**mapping, "ranks": "stoped"}]
    one = {"name": "Big", "type": "dap-mux", "request": "attach", "pathMappings": entries}
    return json.dumps({"configurations": [one]}, indent=2)
