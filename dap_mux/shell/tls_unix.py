"""How clients come in other than by plain TCP: over TLS, and by a unix socket.

A peer that speaks plain DAP to a TLS port, or stalls in the handshake, is closed; nobody else
notices.
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
    """Says in the log why a handshake failed: the event loops keep that to themselves."""

    def do_handshake(self) -> None:
        """One step of it."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            logger.warning("closed a connection: this port speaks TLS (%s)", error.reason)
            raise


def tls_options(context: ssl.SSLContext | None) -> dict[str, Any]:
    """Return what `create_server` is told for TLS; nothing for plain TCP."""
    if context is None:
        return {}
    context.sslobject_class = _Handshake
    return {"ssl": context, "ssl_handshake_timeout": HANDSHAKE_TIMEOUT_S}


async def listen_unix(inside: Callable[[], asyncio.Protocol], path: Path) -> asyncio.Server | None:
    """Listen on a unix socket of mode 0600; None where the system has none for that path."""
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
