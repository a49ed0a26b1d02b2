"""The fault proxy does what its faults say, to connections that live, and heals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support import faults
from tests.support.faults import FaultProxy, proxied
from tests.support.processes.waiting import until

LIMIT = 30.0  # s; not a wait
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Upper:
    """A server that answers in capitals; `met` counts who came, `heard` all that they said."""

    def __init__(self) -> None:
        self.met = 0
        self.heard = b""
        self.chunks = 0
        self.ended = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        try:
            while data := await reader.read(1 << 20):
                self.heard += data
                self.chunks += 1
                writer.write(data.upper())
        except OSError:
            pass  # reset: that is what the proxy is for
        finally:
            self.ended += 1
            writer.close()


@pytest.fixture
async def upper() -> Upper:
    return Upper()


@pytest.fixture
async def proxy(upper: Upper) -> AsyncIterator[FaultProxy]:
    server = await asyncio.start_server(upper.serve, "127.0.0.1", 0)
    async with proxied(server.sockets[0].getsockname()[1]) as one:
        yield one
    server.close()


@pytest.fixture
async def streams(proxy: FaultProxy) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    yield reader, writer
    writer.close()


async def hears(streams: Streams, said: bytes, heard: bytes) -> None:
    """Say this, and hear that."""
    streams[1].write(said)
    assert await asyncio.wait_for(streams[0].readexactly(len(heard)), LIMIT) == heard


async def is_cut(streams: Streams) -> bytes:
    """The connection ends; return what came before."""
    try:
        return await asyncio.wait_for(streams[0].read(), LIMIT)
    except ConnectionResetError:
        return b"(reset)"


async def test_latency_and_rate_are_waited_for(proxy: FaultProxy, streams: Streams) -> None:
    loop = asyncio.get_running_loop()
    for fault, size, least in (
        (faults.Latency(0.05), 3, 0.1),  # both ways
        (faults.Rate(200_000), 10_000, 0.05),
    ):
        await proxy.fail(fault)
        before = loop.time()
        await hears(streams, b"x" * size, b"X" * size)
        assert loop.time() - before >= least
    await proxy.heal()
    await hears(streams, b"well", b"WELL")


async def test_one_byte_chunks(proxy: FaultProxy, upper: Upper, streams: Streams) -> None:
    proxy.up.switch(faults.OneByte())
    await hears(streams, b"x" * 100, b"X" * 100)
    assert upper.heard == b"x" * 100
    assert upper.chunks > 10


async def test_what_is_stalled_comes_when_healed(
    proxy: FaultProxy, upper: Upper, streams: Streams
) -> None:
    proxy.up.switch(faults.Stall())
    await hears(streams, b"", b"")
    streams[1].write(b"late")
    streams[1].write_eof()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(streams[0].read(1), 0.1)
    assert not upper.heard
    await proxy.heal()
    assert await is_cut(streams) == b"LATE"


async def test_a_stall_closes_the_senders_window(proxy: FaultProxy, streams: Streams) -> None:
    proxy.up.switch(faults.Stall())
    streams[1].write(bytes(30_000_000))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(streams[1].drain(), 0.2)


async def test_inject_and_corrupt_once(proxy: FaultProxy, streams: Streams) -> None:
    proxy.down.switch(faults.Inject(b"??"))
    await hears(streams, b"one", b"??ONE")
    proxy.down.switch(faults.Corrupt(4))
    await hears(streams, b"one", b"ONE")
    await hears(streams, b"two", b"T\xa8O")
    await hears(streams, b"three", b"THREE")


async def test_a_black_hole_tells_nobody(proxy: FaultProxy, upper: Upper, streams: Streams) -> None:
    await hears(streams, b"one", b"ONE")
    await proxy.fail(faults.BlackHole())
    streams[1].write(b"lost")
    streams[1].write_eof()
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(streams[0].read(1), 0.1)
    assert (upper.heard, upper.ended) == (b"one", 0)
    await proxy.heal()
    assert await is_cut(streams) == b"(reset)"
    await until(lambda: upper.ended == 1, within=LIMIT, what="the server sees the end")
