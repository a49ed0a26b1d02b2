"""Who listens where, read from Linux's /proc: a connect to find out would wedge debugpy."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

ESTABLISHED: Final = "01"
CLOSE_WAIT: Final = "08"  # the other side has left, and the program has not noticed
_LISTEN: Final = "0A"
_PORTS: Final = (20_000, 32_000)
# Tests that run side by side (pytest-xdist) draw from ranges of their own.
_SIDE_BY_SIDE: Final = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_OURS: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@dataclass
class _Next:
    """Where the next free ports are looked for."""

    port: int = 0


_next: Final = _Next()


class Socket(NamedTuple):
    """One row of /proc/net/tcp; `inode` says which process holds it.

    `in_flight`: bytes sent that the other side has not acknowledged.
    """

    local_port: int
    remote_port: int
    state: str
    inode: str
    in_flight: int


def sockets() -> Iterator[Socket]:
    """Every TCP socket of this machine (of this network namespace)."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in Path(table).read_text("ascii").splitlines()[1:]:
            field = row.split()
            local, remote = (int(address.rsplit(":", 1)[1], 16) for address in field[1:3])
            in_flight = int(field[4].partition(":")[0], 16)
            yield Socket(local, remote, field[3], field[9], in_flight)


def listens(port: int) -> bool:
    """True if anybody listens on `port`."""
    return any(one.state == _LISTEN and one.local_port == port for one in sockets())


def listener(port: int) -> int | None:
    """The pid that listens on `port`."""
    inodes = {one.inode for one in sockets() if one.state == _LISTEN and one.local_port == port}
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return next((pid for pid in pids if inodes & _inodes(pid)), None) if inodes else None


def listening(pid: int) -> list[int]:
    """The ports that a process listens on."""
    inodes = _inodes(pid)
    return [one.local_port for one in sockets() if one.state == _LISTEN and one.inode in inodes]


def connected(pid: int, other: int) -> bool:
    """True if process `pid` has a connection to a port that process `other` listens on."""
    mine, theirs = _inodes(pid), _inodes(other)
    rows = list(sockets())
    ports = {one.local_port for one in rows if one.state == _LISTEN and one.inode in theirs}
    return any(
        one.state == ESTABLISHED and one.inode in mine and one.remote_port in ports for one in rows
    )


def at_rest(port: int) -> bool:
    """True if nothing is on its way from or to a port."""
    return not any(one.in_flight for one in sockets() if port in (one.local_port, one.remote_port))


def accepted(pid: int, port: int) -> set[str]:
    """The inodes of the connections that process `pid` has accepted on a port."""
    rows = [one for one in sockets() if one.state == ESTABLISHED and one.local_port == port]
    return {one.inode for one in rows} & _inodes(pid)


def has_closed(pid: int, inodes: set[str]) -> bool:
    """True once the process has none of these open: it knows of their end."""
    return not inodes & _inodes(pid)


def free_ports(count: int) -> int:
    """Return the first of `count` neighbouring ports that are free on 127.0.0.1.

    From below the ephemeral range: a rank's own outgoing connection must not take one. Each call
    goes on behind the one before: what was returned is not returned again before it is used.
    """
    lowest, highest = _PORTS
    share = (highest - lowest) // _SIDE_BY_SIDE
    lowest += _OURS % _SIDE_BY_SIDE * share
    while True:
        if not lowest <= _next.port <= lowest + share - count:
            _next.port = random.randrange(lowest, lowest + share - count)
        first, _next.port = _next.port, _next.port + count
        with ExitStack() as held, suppress(OSError):  # one is taken: go on
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def _inodes(pid: int) -> set[str]:
    """The sockets that a process holds; none when it is gone or not ours to look at."""
    found: set[str] = set()
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            target = str(entry.readlink())
            if target.startswith("socket:["):
                found.add(target[len("socket:[") : -1])
    return found
