"""The proxy: one listener before one server, two pipes for each connection.

It connects to its server only when a client connects to it, and never by itself: a connection
that is not used wedges debugpy's adapter.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from tests.support.faults.kinds import PASS, Fault
from tests.support.processes.proc_net import free_ports

HOST: Final = "127.0.0.1"
_CHUNK: Final = 64 * 1024
_NOW: Final = struct.pack("ii", 1, 0)  # SO_LINGER: a close is a reset


class Way:
    """One direction of all connections, and what is wrong with it now."""

    def __init__(self) -> None:
        self.fault = PASS
        self._switched = asyncio.Event()

    def switch(self, fault: Fault) -> None:
        """From now on this is wrong with it."""
        self.fault = fault
        self._switched.set()
        self._switched = asyncio.Event()

    async def healed(self, fault: Fault) -> None:
        """Wait until `fault` is over."""
        while self.fault is fault:
            await self._switched.wait()


class Pipe:
    """One direction of one connection."""

    def __init__(
        self, pair: Pair, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pair = pair
        self.way = way
        self._reader = reader
        self._writer = writer

    async def run(self) -> None:
        """Pass on until this direction ends; a connection that breaks ends as a whole."""
        try:
            while data := await self._reader.read(_CHUNK):
                await self.way.fault.carry(self, data)
            await self.way.fault.finish(self)
        except OSError:
            await self.way.fault.broke(self)

    async def write(self, data: bytes) -> None:
        """Write, and wait where the other side does not read."""
        if not self._writer.is_closing():
            self._writer.write(data)
            await self._writer.drain()

    def write_eof(self) -> None:
        """End this direction."""
        if not self._writer.is_closing():
            self._writer.write_eof()


class Pair:
    """One connection: the client's end and the server's, None while there is none."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.client = client
        self.server: asyncio.StreamWriter | None = None
        self.orphan = False

    def close(self) -> None:
        """End both sides after what was written."""
        for writer in self._writers():
            writer.close()

    def reset(self) -> None:
        """End both sides at once."""
        self._reset(self._writers())

    def leave_server(self) -> None:
        """End the client's side at once; the server is not told."""
        self.orphan = True
        self._reset([self.client])

    @staticmethod
    def _reset(writers: list[asyncio.StreamWriter]) -> None:
        for writer in writers:
            sock = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):  # it is closed already
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NOW)
            writer.transport.abort()

    def _writers(self) -> list[asyncio.StreamWriter]:
        return [writer for writer in (self.client, self.server) if writer]


class FaultProxy:
    """Listens on `port` for whoever should get to `target`; `met` counts who came.

    `up` leads to the server, `down` to the client.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.met = 0
        self.up = Way()
        self.down = Way()
        self._whole = PASS
        self._server: asyncio.Server | None = None
        self._pairs: set[Pair] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def connections(self) -> int:
        """How many there are now."""
        return len(self._pairs)

    async def fail(self, fault: Fault) -> None:
        """Fail in this way, in both directions."""
        await self.heal()
        self._whole = fault
        self.up.switch(fault)
        self.down.switch(fault)
        await fault.begin(self)

    async def heal(self) -> None:
        """Work again."""
        fault, self._whole = self._whole, PASS
        self.up.switch(PASS)
        self.down.switch(PASS)
        await fault.end(self)

    def reset(self, *, servers: bool = True, orphans: bool = False) -> None:
        """Reset every connection; without its server's side, or only what that has left."""
        for pair in self._pairs:
            if not servers:
                pair.leave_server()
            elif pair.orphan or not orphans:
                pair.reset()

    async def listen(self) -> None:
        """Accept connections, on the port that we had before if there was one."""
        self.port = self.port or free_ports(1)  # nobody else gets it while we do not listen
        self._server = await asyncio.start_server(self._serve, HOST, self.port)

    def stop_listening(self) -> None:
        """Have the kernel refuse connections."""
        if self._server:
            self._server.close()
            self._server = None

    async def close(self) -> None:
        """End everything."""
        self.stop_listening()
        self.reset()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        pair = Pair(writer)
        self._pairs.add(pair)
        try:
            if self._server is None:  # accepted just before we were told to listen no longer
                pair.reset()
                return
            await self._connect(pair, reader)
        except (OSError, asyncio.CancelledError):
            pair.reset()
        finally:
            pair.close()
            self._pairs.discard(pair)
            self._tasks.discard(task)

    async def _connect(self, pair: Pair, reader: asyncio.StreamReader) -> None:
        if not self._whole.accepts:
            await self.up.healed(self._whole)
            pair.reset()
            return
        there, pair.server = await asyncio.open_connection(HOST, self.target)
        for writer in (pair.client, pair.server):
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        up = Pipe(pair, self.up, reader, pair.server)
        down = Pipe(pair, self.down, there, pair.client)
        await asyncio.gather(up.run(), down.run())


@asynccontextmanager
async def proxied(target: int) -> AsyncIterator[FaultProxy]:
    """A proxy before `target`, until the block is left."""
    proxy = FaultProxy(target)
    await proxy.listen()
    try:
        yield proxy
    finally:
        await proxy.close()


@asynccontextmanager
async def proxies(targets: Sequence[int]) -> AsyncIterator[list[FaultProxy]]:
    """A proxy before each of `targets`."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(proxied(target)) for target in targets]
