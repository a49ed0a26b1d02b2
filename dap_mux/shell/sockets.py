"""The options of every socket (no delay, keepalive), and writing to it at once."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import sys
from typing import Final

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
