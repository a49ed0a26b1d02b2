"""What every socket is set to: no waiting for more bytes, and a dead peer is noticed."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
import sys
from typing import Final

# A dead peer is noticed within 20 s: first probe after 5 s, then 3 more, 4 s apart.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 4), ("TCP_KEEPCNT", 3))
_QUICKACK: Final = getattr(socket, "TCP_QUICKACK", None) if sys.platform == "linux" else None


def tcp_of(transport: asyncio.BaseTransport) -> socket.socket | None:
    """Return the TCP socket under a transport, None for pipes and unix sockets."""
    sock = transport.get_extra_info("socket")
    known = sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6)
    return sock if known else None


def is_from_here(transport: asyncio.BaseTransport) -> bool:
    """Whether the peer is on this machine, as a pipe, a unix socket and loopback are.

    Any of them may be the end of a tunnel.
    """
    if tcp_of(transport) is None:
        return True
    peer = transport.get_extra_info("peername")  # None: it has hung up already
    return bool(peer) and ipaddress.ip_address(peer[0].partition("%")[0]).is_loopback


def prepare(sock: socket.socket | None) -> None:
    """Set TCP_NODELAY and keepalive."""
    if sock is None:
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def acknowledge_now(sock: socket.socket | None) -> None:
    """Acknowledge what has arrived at once, so that a peer that waits for this writes on.

    Measured: three pipelined requests to debugpy take 1.8 ms instead of 44.
    The kernel forgets the wish, so it is told after a receive, and where more is owed only: it
    costs as much as reading a message does.
    """
    if sock is not None and _QUICKACK is not None:
        with contextlib.suppress(OSError):  # the peer may just have gone
            sock.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)


def file_of(transport: asyncio.BaseTransport) -> int | None:
    """Return the file to which bytes for a TCP peer go as they are: None under TLS, for one.

    Both event loops show a socket that cannot `send`, and a socket of Windows is no file.
    """
    sock = tcp_of(transport)
    as_they_are = sys.platform != "win32" and transport.get_extra_info("sslcontext") is None
    return sock.fileno() if sock is not None and as_they_are else None


def write_now(transport: asyncio.WriteTransport, file: int | None, data: bytes) -> None:
    """Write what the kernel takes at once, and leave the rest to the transport.

    uvloop writes only when all that has been read is dealt with (measured: 20 µs later). `file` is
    `file_of` the transport, which is not closing.
    """
    if file is not None and not transport.get_write_buffer_size():
        with contextlib.suppress(OSError):  # full, or gone: the transport sees to it
            data = data[os.write(file, data) :]
    if data:
        transport.write(data)
