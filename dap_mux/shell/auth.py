"""Who is at the other end of a connection, and whether it has to show the token (promise S5).

The same user needs none, by loopback or by the unix socket; every other user does, root too: so a
port-forward into a pod arrives. TCP does not carry user ids, so the peer's socket is looked up in
the kernel's own table.
"""

from __future__ import annotations

import os
import secrets
import socket
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

from dap_mux.engine.admission import Token

_TABLES = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
_LINUX = sys.platform.startswith("linux")


def _unknown_token() -> Token:
    return Token(secrets.token_urlsafe(32))


@dataclass(frozen=True)
class Guard:
    """What a listener asks of those who connect. `asks_all`: of this user too."""

    token: Token = field(default_factory=_unknown_token)
    asks_all: bool = False

    def trusts(self, connection: socket.socket) -> bool:
        """Whether the peer of an accepted connection may come in without the token."""
        return not self.asks_all and _is_this_user(connection)


def _is_this_user(connection: socket.socket) -> bool:
    """Elsewhere than on Linux nobody says: there the unix socket's mode, and loopback, decide."""
    if not _LINUX:
        return True
    uid = unix_uid(connection) if connection.family == socket.AF_UNIX else peer_uid(connection)
    return uid == os.getuid()


def unix_uid(connection: socket.socket) -> int:
    """Return the user id of the process that connected a unix socket."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", packed)[1])


def peer_uid(connection: socket.socket) -> int | None:
    """Return the user id that owns the peer's end of a local connection, None if not listed."""
    try:
        local, peer = connection.getsockname()[:2], connection.getpeername()[:2]
        lines = _TABLES[connection.family].read_text().splitlines()[1:]
    except (OSError, KeyError):  # it has gone already, or there is no such table
        return None
    wanted = (_hex(connection.family, peer), _hex(connection.family, local))
    return next((int(f[7]) for f in map(str.split, lines) if (f[1], f[2]) == wanted), None)


def _hex(family: int, address: tuple[str, int]) -> str:
    """Write an address as the kernel's table does: 32-bit words in host order, then the port."""
    host, port = address
    packed = socket.inet_pton(family, host.split("%")[0])
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
