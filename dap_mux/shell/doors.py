"""How clients come in other than by plain TCP: over TLS, and by a unix socket.

A peer that speaks plain DAP to a TLS port, or stalls in the handshake, is closed with a line in
the log; nobody else notices.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

logger = logging.getLogger("dap_mux.client")
HANDSHAKE_WITHIN: Final = 10.0  # s (S8)


class TlsDoor(asyncio.Protocol):
    """Shakes hands with one peer, and then makes way for the connection that `inside` makes."""

    def __init__(self, context: ssl.SSLContext, inside: Callable[[], asyncio.Protocol]) -> None:
        self._context = context
        self._inside = inside
        self._early: list[bytes] = []
        self._shaking: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TCP is up; not a byte is taken as DAP."""
        # uvloop's transports are none of asyncio's classes
        raw = cast("asyncio.Transport", transport)
        raw.pause_reading()  # until TLS reads it
        self._shaking = asyncio.get_running_loop().create_task(self._shake(raw))

    def data_received(self, data: bytes) -> None:
        """What came in one piece with the end of the handshake."""
        self._early.append(data)

    async def _shake(self, raw: asyncio.Transport) -> None:
        try:
            transport = await asyncio.get_running_loop().start_tls(
                raw,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_WITHIN,
            )
        except OSError as error:
            logger.warning("closed a connection: this port speaks TLS, and it does not (%s)", error)
            return
        if transport is not None:
            self._open(transport)

    def _open(self, transport: asyncio.Transport) -> None:
        connection = self._inside()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        for data in self._early:
            connection.data_received(data)
        if transport.is_closing():
            connection.connection_lost(None)


async def listen_unix(inside: Callable[[], asyncio.Protocol], path: Path) -> asyncio.Server | None:
    """Listen on a unix socket of mode 0600 (S5); None where the system has none for that path."""
    sock = _bound(path) if hasattr(socket, "AF_UNIX") else None
    if sock is None:
        return None
    return await asyncio.get_running_loop().create_unix_server(inside, sock=sock)


def _bound(path: Path) -> socket.socket | None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()  # of a session of this number that was killed
    sock = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)  # private from the first moment
    try:
        sock.bind(str(path))
    except OSError as error:  # the path is longer than the 100 letters or so that there may be
        sock.close()
        logger.info("no unix socket at %s: %s", path, error)
        return None
    finally:
        os.umask(before)
    return sock
