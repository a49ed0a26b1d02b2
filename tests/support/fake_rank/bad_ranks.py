"""TCP servers that are no debugpy, or a broken one: one small class for each fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from dap_mux.pure.protocol.messages import encode_frame

HOST: Final = "127.0.0.1"
_INITIALIZED: Final = (
    b'{"seq":1,"type":"response","request_seq":1,"success":true,"command":"initialize","body":{}}'
)


class BadRank:
    """Accepts, counts in `met`, and does what its kind does; reads whatever comes."""

    def __init__(self) -> None:
        self.met = 0

    async def greet(self, writer: asyncio.StreamWriter) -> None:
        """Say what this kind says to whoever connects. This one says nothing, for ever."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until the other side ends it."""
        self.met += 1
        try:
            await self.greet(writer)
            while await reader.read(65536):
                pass
        except OSError:
            pass  # it went before we had finished: that is what bad ranks are for
        finally:
            writer.close()


class Silent(BadRank):
    """A listener that never answers."""


class Garbage(BadRank):
    """Not DAP at all."""

    async def greet(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP ready\r\n\r\n" + bytes(range(256)))


class NotJson(BadRank):
    """A proper frame around something else."""

    async def greet(self, writer: asyncio.StreamWriter) -> None:
        writer.write(encode_frame(b"{'seq': 1"))


class WrongShapes(BadRank):
    """Valid JSON, and every field of the wrong type; then an answer, so that it is attached to."""

    async def greet(self, writer: asyncio.StreamWriter) -> None:
        for body in (
            b'{"seq":1,"type":"event","event":"stopped","body":[]}',
            b'{"seq":2,"type":"event","event":"output","body":{"output":7}}',
            b'{"seq":3,"type":"event","event":"thread","body":{"threadId":"x"}}',
            b'{"seq":4,"type":"event","event":"breakpoint","body":{"breakpoint":3}}',
            _INITIALIZED,
        ):
            writer.write(encode_frame(body))


class CutShort(BadRank):
    """The connection ends in the middle of a message."""

    async def greet(self, writer: asyncio.StreamWriter) -> None:
        writer.write(encode_frame(_INITIALIZED)[:-10])
        await writer.drain()
        writer.close()


class Huge(BadRank):
    """Announces a body of a terabyte."""

    async def greet(self, writer: asyncio.StreamWriter) -> None:
        writer.write(b"Content-Length: 1099511627776\r\n\r\n{")


@asynccontextmanager
async def serving(bad: BadRank) -> AsyncIterator[int]:
    """Serve until the block is left; yield the port."""
    server = await asyncio.start_server(bad.serve, HOST, 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
