"""A rank's socket is never closed in mid-frame, which would cost the rank its port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dap_mux.engine import Engine
from dap_mux.pure.protocol.messages import Framer, encode_frame
from dap_mux.shell.driver import Driver
from dap_mux.shell.links import RankLink
from tests.support.fake_rank.injected_calls import INJECTED

LONG = b"x" * 8_000_000  # more than any socket buffer takes
LIMIT = 30.0  # s; not a wait


class BusyRank:
    """Accepts a connection, and reads nothing of it before it is told."""

    def __init__(self) -> None:
        self.reads = asyncio.Event()
        self.heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        await self.reads.wait()
        self.heard.set_result(await reader.read(-1))
        writer.close()


class Keeping(Driver):
    """Keeps a link although its engine knows no rank behind it."""

    def link_up(self, number: int, link: RankLink) -> None:
        self._links[number] = link


@pytest.fixture
async def rank() -> AsyncIterator[tuple[BusyRank, RankLink]]:
    """A busy rank, and our connection to it."""
    busy, driver = BusyRank(), Keeping(Engine(INJECTED))
    server = await asyncio.start_server(busy.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    _, link = await loop.create_connection(lambda: RankLink(driver, 1), "127.0.0.1", port)
    yield busy, link
    await driver.close()
    server.close()
    await server.wait_closed()


async def is_whole(busy: BusyRank) -> None:
    """What the rank hears up to the end of the connection is one message."""
    busy.reads.set()
    framer = Framer()
    assert framer.feed(await asyncio.wait_for(busy.heard, LIMIT)) == [LONG]
    assert framer.waiting_for == ""


async def test_a_link_that_we_close(rank: tuple[BusyRank, RankLink]) -> None:
    busy, link = rank
    link.send(encode_frame(LONG))
    link.close()
    link.send(encode_frame(b"too late"))
    await is_whole(busy)


async def test_a_rank_that_sends_garbage_meanwhile(rank: tuple[BusyRank, RankLink]) -> None:
    busy, link = rank
    link.send(encode_frame(LONG))
    link.data_received(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    link.send(encode_frame(b"too late"))
    await is_whole(busy)
