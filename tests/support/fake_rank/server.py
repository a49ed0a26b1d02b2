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

Twist = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
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
    rank = door(rank) if rank.attached_with is not None else rank
    rank.accepts()
    _say(rank, twist, writer)
    framer = Framer()
    over = False
    while not over and (data := await reader.read(65536)):
        for body in framer.feed(data):
            request = json.loads(body)
            rank = addressed(rank, request)
            rank.receive(request)
            over = request["command"] == "disconnect" and not rank.dead
            rank.runs_on()
        _say(rank, twist, writer)
    rank.hangs_up()
    writer.close()


def _say(rank: FakeRank, twist: Twist, writer: asyncio.StreamWriter) -> None:
    for message in twist(rank.outbox):
        writer.write(encode_frame(json.dumps(message).encode()))
    rank.outbox = []
