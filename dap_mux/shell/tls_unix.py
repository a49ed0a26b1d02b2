"""Listeners other than plain TCP: TLS, and a unix socket.

A peer that speaks plain DAP to a TLS port, or stalls in the handshake, is disconnected without
affecting others.
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
from typing import Any, Final

logger = logging.getLogger("dap_mux.client")
HANDSHAKE_TIMEOUT_S: Final = 10.0


class _Handshake(ssl.SSLObject):
    """Logs why a handshake failed, which the event loops do not."""

    def do_handshake(self) -> None:
        """Perform one step of the handshake."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            logger.warning("closed a connection: this port speaks TLS (%s)", error.reason)
            raise


def tls_options(context: ssl.SSLContext | None) -> dict[str, Any]:
    """Return the arguments of `create_server` for TLS; none for plain TCP."""
    if context is None:
        return {}
    context.sslobject_class = _Handshake
    return {"ssl": context, "ssl_handshake_timeout": HANDSHAKE_TIMEOUT_S}


async def listen_unix(factory: Callable[[], asyncio.Protocol], path: Path) -> asyncio.Server | None:
    """Listen on a unix socket of mode 0600; None where that path cannot have one."""
    sock = _bound(path) if hasattr(socket, "AF_UNIX") else None
    if sock is None:
        return None
    return await asyncio.get_running_loop().create_unix_server(factory, sock=sock)


def _bound(path: Path) -> socket.socket | None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()  # left by a killed session with this pid
    sock = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)  # private from the start
    try:
        sock.bind(str(path))
    except OSError as error:  # the path is longer than about 100 characters
        sock.close()
        logger.info("no unix socket at %s: %s", path, error)
        return None
    finally:
        os.umask(before)
    return sock
