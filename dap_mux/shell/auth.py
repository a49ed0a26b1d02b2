"""Decides for each connection whether the peer must show the token.

This user does not, through loopback or the unix socket. Every other user does, root included: a
port-forward into a pod arrives as root. The decision is made when a connection is accepted, before
anything is read from it. A peer whose user the kernel does not tell, for instance because it has
closed the connection already, must show the token.
"""

from __future__ import annotations

import os
import socket
import sys
from functools import cache
from typing import Final

from msgspec import Struct, field

from dap_mux import procfs
from dap_mux.engine.admission import Token
from dap_mux.shell.peer_credentials import tcp_uid, unix_uid

_LINUX: Final = sys.platform.startswith("linux")
_USER_IDS: Final = 2**32 - 1


def _unknown_token() -> Token:
    return Token(os.urandom(32).hex())


class Guard(Struct, frozen=True):
    """The token that a listener asks for. `asks_all`: even of this user."""

    token: Token = field(default_factory=_unknown_token)
    asks_all: bool = False

    def trusts(self, connection: socket.socket) -> bool:
        """Whether a peer whose connection was just accepted is admitted without the token."""
        return not self.asks_all and _is_this_user(connection)


def _is_this_user(connection: socket.socket) -> bool:
    """Only Linux tells; elsewhere the unix socket's mode and loopback protect the session."""
    if not _LINUX:
        return True
    uid = unix_uid(connection) if connection.family == socket.AF_UNIX else tcp_uid(connection)
    return uid == os.getuid() and _is_one_user(os.getuid())


@cache
def _is_one_user(uid: int) -> bool:
    """Whether this user id stands for one user.

    In a user namespace all users without a mapping share the id of `nobody`.
    """
    try:
        if (nobody := procfs.kernel_setting("overflowuid")) is None:
            return False
        return uid != nobody or procfs.user_ids_mapped() >= _USER_IDS
    except (OSError, ValueError, IndexError):
        return False
