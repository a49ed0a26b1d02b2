"""The options of every socket (no delay, keepalive), writing to it at once, and dead peers."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import socket
import ssl
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from dap_mux.shell.timers import Timer, Timers

# A dead peer is noticed within 14 s: the first probe after 5 s, 3 more at intervals of 3 s.
_KEEPALIVE: Final = tuple(
    (getattr(socket, name), value)
    for name, value in {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3}.items()
    if hasattr(socket, name)
)
_QUICKACK: Final = getattr(socket, "TCP_QUICKACK", None) if sys.platform == "linux" else None


def tcp_of(transport: asyncio.BaseTransport) -> socket.socket | None:
    """Return the TCP socket under a transport, None for pipes and unix sockets."""
    sock = transport.get_extra_info("socket")
    known = sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6)
    return sock if known else None


def options_of(transport: asyncio.BaseTransport) -> socket.socket | None:
    """Return a socket to set options of, where `tcp_of` has one; `detach` it at the end.

    uvloop makes a socket for each option that is set by its own (measured: 3 µs, nine times the
    option's cost).
    """
    sock = tcp_of(transport)
    if sock is None:
        return None
    return socket.socket(sock.family, sock.type, sock.proto, fileno=sock.fileno())


def is_from_here(transport: asyncio.BaseTransport) -> bool:
    """Whether the peer is on this machine, as a pipe, a unix socket and loopback are.

    Any of these may still be the end of a tunnel.
    """
    if tcp_of(transport) is None:
        return True
    peer = transport.get_extra_info("peername")  # None: closed already
    return bool(peer) and ipaddress.ip_address(peer[0].partition("%")[0]).is_loopback


def prepare(sock: socket.socket | None) -> None:
    """Set TCP_NODELAY and keepalive."""
    if sock is None:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


def acknowledge_now(sock: socket.socket | None) -> None:
    """Acknowledge received data at once, for a peer that waits for that before it sends more.

    Measured: three pipelined requests to debugpy take 1.8 ms instead of 44 ms. The kernel resets
    the option, so it is set after each receive, but only where more data is expected: it costs
    as much as reading a message.
    """
    if sock is not None and _QUICKACK is not None:
        try:  # which costs nothing here, unlike `suppress`
            sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
        except OSError:  # the peer may have gone
            return


def file_of(transport: asyncio.BaseTransport) -> int | None:
    """Return the descriptor for writing directly to a TCP peer; None with TLS, for instance.

    The socket objects of both event loops have no `send`, and Windows sockets are not files.
    """
    sock = tcp_of(transport)
    as_they_are = sys.platform != "win32" and transport.get_extra_info("sslcontext") is None
    return sock.fileno() if sock is not None and as_they_are else None


def write_now(transport: asyncio.WriteTransport, file: int | None, data: bytes) -> None:
    """Write what the kernel accepts at once, and leave the rest to the transport.

    uvloop writes only after it has handled everything that was read (measured: 20 µs later).
    `file` is `file_of` the transport, which is not closing.
    """
    if file is not None and not transport.get_write_buffer_size():
        try:
            written = os.write(file, data)
        except OSError:  # full, or gone: the transport handles both
            written = 0
        if written == len(data):
            return
        data = data[written:]
    transport.write(data)


# Listeners other than plain TCP: TLS, and a unix socket.
#
# A peer that speaks plain DAP to a TLS port, or stalls in the handshake, is disconnected without
# affecting others.

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


# A peer that has gone while we have data for it; keepalive covers idle connections.
#
# TCP retransmits unacknowledged data for a quarter of an hour. TCP_USER_TIMEOUT would shorten
# that, and also end connections to peers that are alive and do not read, such as a rank that
# hangs or a busy editor (measured: Linux ends them although the probes of the closed window are
# answered). So we ask the kernel since when the peer has not acknowledged anything.

CHECK_INTERVAL_S: Final = 3.0
ACK_TIMEOUT_S: Final = 9.0  # a dead peer is noticed within 15 s altogether
# struct tcp_info of linux/tcp.h: tcpi_probes; tcpi_unacked and tcpi_last_ack_recv (ms)
_INFO: Final = struct.Struct("=3xB4x4x4x4x4xI4x4x4x4x4x4x4xI")
_TCP_INFO: Final = getattr(socket, "TCP_INFO", None)
_SOME_PROBES: Final = 2  # one may be in flight


class LivenessMonitor:
    """Checks one connection periodically; calls `dead` with the reason once its peer is gone."""

    __slots__ = ("_dead", "_pending", "_sock", "_timer", "_timers")

    def __init__(
        self, sock: socket.socket | None, dead: Callable[[str], None], timers: Timers
    ) -> None:
        self._sock = sock
        self._dead = dead
        self._timers = timers
        self._timer: Timer | None = None
        self._pending = False  # at the last check
        if sock is not None and _TCP_INFO is not None:
            self._wait()

    def stop(self) -> None:
        """Stop checking: the connection has ended."""
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _wait(self) -> None:
        self._timer = self._timers.call_later(CHECK_INTERVAL_S, self._look)

    def _look(self) -> None:
        assert self._sock is not None
        silent = unacknowledged_for(self._sock)
        # Data sent just now is not late, however long ago the last acknowledgement came: a closed
        # window is probed less and less often.
        if silent < ACK_TIMEOUT_S or not self._pending:
            self._pending = silent > 0
            self._wait()
            return
        self._timer = None
        self._dead(f"the peer has not acknowledged anything for {silent:.0f} s")


def unacknowledged_for(sock: socket.socket) -> float:
    """Return for how long (s) the peer has not acknowledged pending data; 0.0 if it has."""
    assert _TCP_INFO is not None
    with contextlib.suppress(OSError):  # closed in the meantime
        info = sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _INFO.size)
        probes, unacked, last_ack = _INFO.unpack(info)
        if unacked or probes >= _SOME_PROBES:
            return float(last_ack) / 1000
    return 0.0
