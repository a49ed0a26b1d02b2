"""Decides for each connection whether the peer must show the token."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct, field

from dap_mux.engine.admission import Token
from dap_mux.system import procfs

# The user at the other end of a connection on this machine, as the kernel (Linux) tells it.
#
# A unix socket carries the credentials of the process that connected it. TCP carries none, so the
# peer's own socket is looked up: by its addresses (sock_diag), or in the table of all connections
# where the kernel offers no such lookup, as in some sandboxes.
#
# A socket that its process has closed has no owner: the kernel lists it without an inode and, in
# most versions, as root's. Only an open socket identifies its user.

_OPEN: Final = frozenset({procfs.ESTABLISHED, procfs.CLOSE_WAIT})

# linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h
_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_NLM_F_REQUEST: Final = 1
_MESSAGE: Final = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_REQUEST: Final = struct.Struct("=BBBxI")  # inet_diag_req_v2: family, protocol, extensions, states
_ID: Final = struct.Struct("!HH16s16s12s")  # inet_diag_sockid: ports, addresses, device and cookie
_REPLY: Final = struct.Struct("=xBxx48x4x4x4xII")  # inet_diag_msg: state, uid, inode
_ANY_COOKIE: Final = bytes(4) + b"\xff" * 8
_EVERY_STATE: Final = 0xFFFFFFFF
_Address = tuple[str, int]


class _End(NamedTuple):
    """One end of a connection, as the kernel lists it."""

    state: int
    uid: int
    inode: int


def unix_uid(connection: socket.socket) -> int:
    """Return the user id of the process that connected a unix socket."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", packed)[1])


def tcp_uid(connection: socket.socket) -> int | None:
    """Return the user id that owns the peer's end of an accepted connection.

    None where the kernel does not tell: the peer is not on this machine, or has closed its end.
    """
    try:
        ours, theirs = _addresses(connection)
        end = _end_of(theirs, ours)
        # The kernel does not reuse the peer's address while our end exists: a connection that still
        # exists is the one that was found.
        if end is None or _addresses(connection) != (ours, theirs):
            return None
    except (OSError, ValueError):  # closed already, or not a TCP connection
        return None
    return end.uid if end.inode and end.state in _OPEN else None


def _addresses(connection: socket.socket) -> tuple[_Address, _Address]:
    """Return our address and the peer's. Raises OSError once the connection is gone."""
    return _plain(connection.getsockname()), _plain(connection.getpeername())


def _plain(name: tuple[str, int]) -> _Address:
    """Return an IPv4-mapped address as IPv4: the two ends may differ in the family."""
    host = ipaddress.ip_address(name[0].partition("%")[0])
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    return str(mapped or host), name[1]


def _end_of(address: _Address, other: _Address) -> _End | None:
    """Look up the socket at `address` whose peer is `other`."""
    try:
        return _by_sock_diag(address, other)
    except OSError:  # no such socket, or no such lookup: the error is the same
        return _by_table(address, other)


def _by_sock_diag(address: _Address, other: _Address) -> _End | None:
    """Ask the kernel for one socket. Raises OSError where it has none, or does not answer.

    It reads the owner first and the inode afterwards: with an inode, the owner is a real one.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    packed = (socket.inet_pton(family, host).ljust(16, b"\0") for host in (address[0], other[0]))
    request = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, _EVERY_STATE)
    request += _ID.pack(address[1], other[1], *packed, _ANY_COOKIE)
    length = _MESSAGE.size + len(request)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.setblocking(False)  # the answer is there when `send` returns
        head = _MESSAGE.pack(length, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
        kernel.send(head + request)
        answer = kernel.recv(4096)
    if _MESSAGE.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        raise OSError("the kernel does not know that socket")
    return _End(*_REPLY.unpack_from(answer, _MESSAGE.size))


def _by_table(address: _Address, other: _Address) -> _End | None:
    """Find the socket in the tables of all connections.

    Reading a row is not atomic: the owner may be that of a socket closed since the inode was
    read. If a second look finds the same inode, the socket was open in between.
    """
    first = _row(address, other)
    return first if first is not None and first == _row(address, other) else None


def _row(address: _Address, other: _Address) -> _End | None:
    for row in procfs.tcp_sockets():
        ports = row.port, row.remote_port  # first: a table may be long, and hosts take time to read
        if ports == (address[1], other[1]) and (row.host, row.remote_host) == (
            address[0],
            other[0],
        ):
            return _End(row.state, row.uid, int(row.inode))
    return None


_LINUX: Final = sys.platform.startswith("linux")
_USER_IDS: Final = 2**32 - 1


def _unknown_token() -> Token:
    return Token(os.urandom(32).hex())


# This user need not show the token, through loopback or the unix socket. Every other user must,
# root included: a port-forward into a pod arrives as root. The decision is made when a connection
# is accepted, before anything is read from it. A peer whose user the kernel does not tell, for
# instance because it has closed the connection already, must show the token.
class Guard(Struct, frozen=True):
    """The token that a listener asks for. `asks_all`: even of this user."""

    token: Token = field(default_factory=_unknown_token)
    asks_all: bool = False

    @classmethod
    def for_all(cls, secret: str) -> Guard:
        """Return one that asks everybody for this token."""
        return cls(Token(secret), asks_all=True)

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
