"""`write_now`: bytes come in order, whoever writes them, and go out as they are or not at all."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, cast

import pytest
import uvloop

from dap_mux.shell.sockets import file_of, write_now

HOST: Final = "127.0.0.1"
MANY: Final = [bytes([n]) * 100_000 for n in range(64)]  # more than a socket holds


@asynccontextmanager
async def ends() -> AsyncIterator[tuple[asyncio.WriteTransport, socket.socket]]:
    """A transport, and the far end of its connection."""
    loop = asyncio.get_running_loop()
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        near, protocol = await loop.create_connection(Closing, HOST, port)
        far, _ = server.accept()
    with far:
        yield cast("asyncio.WriteTransport", near), far
        near.close()
        await protocol.closed


class Closing(asyncio.Protocol):
    """Tells when its transport is closed."""

    def __init__(self) -> None:
        self.closed = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is."""
        self.closed.set_result(exc)


def received(far: socket.socket) -> bytes:
    """Read to the end."""
    with far.makefile("rb") as file:
        return file.read()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_the_kernel_does_not_take_comes_after_what_it_took(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def written() -> bytes:
        async with ends() as (near, far):
            for part in MANY:
                write_now(near, file_of(near), part)
            assert near.get_write_buffer_size(), "all of it went: nothing was tried"
            near.close()
            return await asyncio.get_running_loop().run_in_executor(None, received, far)

    loop = new_loop()
    try:
        assert loop.run_until_complete(written()) == b"".join(MANY)
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def test_a_peer_that_has_gone_is_the_transports_business() -> None:
    async with ends() as (near, far):
        far.close()
        for part in MANY:
            if not near.is_closing():
                write_now(near, file_of(near), part)
            await asyncio.sleep(0)
        assert near.is_closing()


class Said:
    """A transport as far as `file_of` asks."""

    def __init__(self, under: asyncio.BaseTransport, context: ssl.SSLContext | None) -> None:
        self._said = {"socket": under.get_extra_info("socket"), "sslcontext": context}

    def get_extra_info(self, name: str) -> object:
        """What is known of the connection."""
        return self._said[name]


async def test_under_tls_nothing_goes_past_the_transport() -> None:
    context = ssl.create_default_context()
    async with ends() as (near, _):
        assert file_of(cast("asyncio.BaseTransport", Said(near, None))) is not None
        assert file_of(cast("asyncio.BaseTransport", Said(near, context))) is None
