"""The fake rank behind a real socket, for clients that are not scripted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dap_mux.protocol.framing import Framer, encode_frame
from tests.support.fake_rank import FakeRank


@asynccontextmanager
async def serving(rank: FakeRank) -> AsyncIterator[int]:
    """Yield the port on which the rank listens; its program runs by itself."""
    server = await asyncio.start_server(lambda *streams: _serve(rank, *streams), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _serve(
    rank: FakeRank, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    rank.accepts()
    framer = Framer()
    while data := await reader.read(65536):
        for body in framer.feed(data):
            rank.receive(json.loads(body))
            rank.runs_on()
        for message in rank.outbox:
            writer.write(encode_frame(json.dumps(message).encode()))
        rank.outbox = []
    rank.hangs_up()
    writer.close()
