"""The guard of every port: whether a peer may come in as it is, or has to show the token.

This user needs no token, by loopback or by the unix socket; every other user does, root too: a
port-forward into a pod arrives as root. It is decided once for each connection, when that is
accepted and before any of its bytes is heard. A peer of which the kernel does not say whose it is,
for instance because it has hung up already, is a stranger.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from dap_mux import procfs
from dap_mux.engine.admission import Token
from dap_mux.shell.peer_credentials import tcp_uid, unix_uid

_LINUX: Final = sys.platform.startswith("linux")
_USER_IDS: Final = 2**32 - 1


def _unknown_token() -> Token:
    return Token(secrets.token_urlsafe(32))


@dataclass(frozen=True)
class Guard:
    """What a listener asks of those who connect. `asks_all`: of this user too."""

    token: Token = field(default_factory=_unknown_token)
    asks_all: bool = False

    def trusts(self, connection: socket.socket) -> bool:
        """Whether the peer may come in without the token; asked when a connection is accepted."""
        return not self.asks_all and _is_this_user(connection)


def _is_this_user(connection: socket.socket) -> bool:
    """Elsewhere than on Linux nobody says: there the unix socket's mode, and loopback, decide."""
    if not _LINUX:
        return True
    uid = unix_uid(connection) if connection.family == socket.AF_UNIX else tcp_uid(connection)
    return uid == os.getuid() and _is_one_user(os.getuid())


@cache
def _is_one_user(uid: int) -> bool:
    """Whether this user id is one user's only.

    A user namespace shows every user that it does not know by the same id, that of `nobody`.
    """
    try:
        if (nobody := procfs.kernel_setting("overflowuid")) is None:
            return False
        return uid != nobody or procfs.user_ids_mapped() >= _USER_IDS
    except (OSError, ValueError, IndexError):
        return False
