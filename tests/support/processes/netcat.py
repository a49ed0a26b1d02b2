"""Plain consoles as `nc` reaches them: a command that serves them, and who connects."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

from tests.support.processes.commands import LIMIT, Command, User
from tests.support.processes.waiting import until

PROMPT = b"dap-mux> "


class Netcat:
    """What `nc` is: bytes there, bytes back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int, *, local: str = "127.0.0.1") -> Netcat:
        streams = await asyncio.open_connection("127.0.0.1", port, local_addr=(local, 0))
        return cls(*streams)

    async def until(self, end: bytes) -> str:
        """Read up to these bytes."""
        return (await asyncio.wait_for(self._reader.readuntil(end), LIMIT)).decode()

    async def does(self, line: str, end: bytes = PROMPT) -> str:
        """Type a line; return what comes before the next prompt."""
        self.types(line)
        return await self.until(end)

    def types(self, line: str) -> None:
        """Type a line, and wait for nothing."""
        self._writer.write(f"{line}\n".encode())

    async def rest(self) -> str:
        """Read to the end of the connection."""
        return (await asyncio.wait_for(self._reader.read(), LIMIT)).decode()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):  # the other end was faster, and left words unread
            await self._writer.wait_closed()


async def served(user: User) -> tuple[Command, int]:
    """Serve consoles on a free port."""
    command = await user.start("console", "--serve", "0", "--words", "monarch")
    await command.says("; try `nc ")
    await until(lambda: command.err.endswith("\n"), within=LIMIT, what="the whole line")
    found = re.search(r"consoles on 127\.0\.0\.1:(\d+); try `nc 127\.0\.0\.1 \1`", command.err)
    assert found is not None
    return command, int(found[1])
