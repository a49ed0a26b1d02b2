"""The fake rank behind a real socket, for clients that are not scripted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from dap_mux.pure.protocol.messages import Framer, encode_frame
from tests.support.fake_rank.children import addressed, door
from tests.support.fake_rank.rank import FakeRank

Json = dict[str, Any]
Twist = Callable[[list[Json]], list[Json]]
"""What becomes of all that the rank says at one time."""


@asynccontextmanager
async def serving(rank: FakeRank, twist: Twist = list) -> AsyncIterator[int]:
    """Yield the port on which the rank listens; its program runs by itself."""
    server = await asyncio.start_server(
        lambda *streams: _serve(rank, twist, *streams), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _serve(
    rank: FakeRank, twist: Twist, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    rank = await converse(entered(rank), reader, writer, twist=twist)
    rank.hangs_up()
    writer.close()


def entered(rank: FakeRank) -> FakeRank:
    """Who a new connection to a rank is for, before it says so."""
    return door(rank) if rank.attached_with is not None else rank


async def converse(
    rank: FakeRank,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    hear: Callable[[FakeRank, Json], None] = FakeRank.receive,
    twist: Twist = list,
) -> FakeRank:
    """Speak for a rank until its client leaves; return whom the connection was for in the end."""
    rank.accepts()
    say(rank, writer, twist)
    framer = Framer()
    over = False
    while not over and (data := await reader.read(65536)):
        for body in framer.feed(data):
            request = json.loads(body)
            rank = addressed(rank, request)
            hear(rank, request)
            over = request["command"] == "disconnect" and not rank.dead
            rank.runs_on()
        say(rank, writer, twist)
        await writer.drain()
    return rank


def say(rank: FakeRank, writer: asyncio.StreamWriter, twist: Twist = list) -> None:
    """Send what the rank has to say."""
    said, rank.outbox = twist(rank.outbox), []
    writer.write(b"".join(encode_frame(json.dumps(message).encode()) for message in said))
