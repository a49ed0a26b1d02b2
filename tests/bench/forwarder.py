"""A bare byte forwarder, one pair of asyncio protocols a connection: the least a proxy can cost.

`python -m tests.bench.forwarder PORT` prints the list of the one port it forwards from.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import cast

import anyio


class Half(asyncio.Protocol):
    """One side of a connection; bytes go to the other as they come."""

    def __init__(self, other: Half | None = None) -> None:
        self.other = other
        self.transport: asyncio.Transport | None = None
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self.transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.other:
            self.other.joined(self)

    def joined(self, other: Half) -> None:
        """The far side is connected too."""
        self.other = other
        assert other.transport is not None
        other.transport.writelines(self._early)

    def data_received(self, data: bytes) -> None:
        """Pass on."""
        if self.other and self.other.transport:
            self.other.transport.write(data)
        else:
            self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other side too."""
        if self.other and self.other.transport:
            self.other.transport.close()


async def forward(port: int) -> None:
    """Accept for ever; each connection gets one of its own to `port`."""
    loop = asyncio.get_running_loop()
    connecting: set[asyncio.Task[object]] = set()

    class Near(Half):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            task = loop.create_task(loop.create_connection(lambda: Half(self), "127.0.0.1", port))
            connecting.add(task)
            task.add_done_callback(connecting.discard)

    server = await loop.create_server(Near, "127.0.0.1", 0)
    print(json.dumps([server.sockets[0].getsockname()[1]]), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    options = {"use_uvloop": True}  # as the proxy
    anyio.run(forward, int(sys.argv[1]), backend="asyncio", backend_options=options)
