"""A child process that takes commands on its standard input: one line of JSON, and one back."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

LIMIT: Final = 60.0  # s; not a wait


class Commanded:
    """Our end: `ask` sends a command with its arguments, and returns what comes back."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._turn = asyncio.Lock()

    async def ask(self, command: str, *arguments: object) -> Any:
        """Return the child's answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        async with self._turn:
            stdin.write(json.dumps([command, *arguments]).encode() + b"\n")
            line = await asyncio.wait_for(stdout.readline(), LIMIT)
        assert line, f"{command}: it has ended: {self.said}"
        return json.loads(line)

    @property
    def said(self) -> str:
        """What it has written to its standard error."""
        return self._log.read_text("utf-8")


@asynccontextmanager
async def commanded(module: str, *words: object, log: Path) -> AsyncIterator[Commanded]:
    """Run `python -m module words`, until the block is left."""
    pipe = asyncio.subprocess.PIPE
    with log.open("wb") as err:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *map(str, words)),
            stdin=pipe,
            stdout=pipe,
            stderr=err,
            limit=1 << 20,
            # Else its memory says how many threads have had an arena of the allocator's, which
            # hold several MiB each, and grows with the pool: `threads` is judged by itself.
            env={**os.environ, "MALLOC_ARENA_MAX": "1"},
        )
    child = Commanded(process, log)
    try:
        yield child
        assert process.stdin
        process.stdin.close()
        code = await asyncio.wait_for(process.wait(), LIMIT)
        assert code == 0, f"{module} ended with {code}: {child.said}"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


Handler = Callable[..., Awaitable[object]]


async def obey(handlers: dict[str, Handler]) -> None:
    """The child's end: carry out commands until there will be no more."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command, *arguments = json.loads(line)
        print(json.dumps(await handlers[command](*arguments)), flush=True)
