"""Who may connect, and where we may listen (promises S1 and S5).

On loopback the same user needs nothing and everybody else is refused. TCP does not carry user
ids, so the peer's socket is looked up in the kernel's own table.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from pathlib import Path

from dap_mux.errors import Refused

_TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}


def check_bind(host: str) -> None:
    """Raise `Refused` for anything but a loopback address: there is no token to ask for yet."""
    if not is_loopback(host):
        raise Refused(
            f"refused to listen on {host}: whoever reaches this port can run code in every rank. "
            "Listen on 127.0.0.1 and use an ssh or kubectl port-forward."
        )


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine and nothing else."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def allowed(connection: socket.socket) -> bool:
    """Whether the peer of an accepted TCP connection is this user (on Linux; elsewhere yes)."""
    if not sys.platform.startswith("linux"):
        return True
    uid = peer_uid(connection)
    return uid is None or uid == os.getuid()


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user id that owns the peer's end of a local connection, None if not listed."""
    local, peer = connection.getsockname()[:2], connection.getpeername()[:2]
    wanted = (_hex(connection.family, peer), _hex(connection.family, local))
    try:
        lines = _TABLES[connection.family].read_text().splitlines()[1:]
    except (OSError, KeyError):
        return None
    return next((int(f[7]) for f in map(str.split, lines) if (f[1], f[2]) == wanted), None)


def _hex(family: int, address: tuple[str, int]) -> str:
    """Write an address as the kernel's table does: 32-bit words in host order, then the port."""
    host, port = address
    packed = socket.inet_pton(family, host.split("%")[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
