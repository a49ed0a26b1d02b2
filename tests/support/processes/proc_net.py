"""Who listens where, and free ports: a connect to find out would wedge debugpy."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dap_mux.rank.injected.attach.adapter_keeper import listening_sockets
from dap_mux.system.procfs import ESTABLISHED, pids, socket_inodes, tcp_sockets

_PORTS: Final = (20_000, 32_000)
# Tests that run side by side (pytest-xdist) draw from ranges of their own.
_SIDE_BY_SIDE: Final = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_OURS: Final = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@dataclass
class _Next:
    """Where the next free ports are looked for."""

    port: int = 0


_next: Final = _Next()


def _listeners() -> Iterator[tuple[int, str]]:
    """Every listening socket of this machine (of this network namespace): its port and inode.

    Reading the table of all connections instead takes 5 ms of CPU, and tests look often.
    """
    for family in (socket.AF_INET, socket.AF_INET6):
        for port, _, inode in listening_sockets(family):
            yield port, str(inode)


def listens(port: int) -> bool:
    """True if anybody listens on `port`."""
    return any(one == port for one, _ in _listeners())


def listener(port: int) -> int | None:
    """The pid that listens on `port`."""
    inodes = {inode for one, inode in _listeners() if one == port}
    return next((pid for pid in pids() if inodes & socket_inodes(pid)), None) if inodes else None


def listening(pid: int) -> list[int]:
    """The ports that a process listens on."""
    inodes = socket_inodes(pid)
    return [port for port, inode in _listeners() if inode in inodes]


def connected(pid: int, other: int) -> bool:
    """True if process `pid` has a connection to a port that process `other` listens on."""
    mine, ports = socket_inodes(pid), listening(other)
    return any(
        one.state == ESTABLISHED and one.inode in mine and one.remote_port in ports
        for one in tcp_sockets()
    )


def at_rest(port: int) -> bool:
    """True if nothing is on its way from or to a port: all that was sent is acknowledged."""
    rows = (row.split() for row in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:])
    ours = (row[4] for row in rows if any(end.endswith(f":{port:04X}") for end in row[1:3]))
    return all(int(queues.partition(":")[0], 16) == 0 for queues in ours)


def accepted(pid: int, port: int) -> set[str]:
    """The inodes of the connections that process `pid` has accepted on a port."""
    rows = [one for one in tcp_sockets() if one.state == ESTABLISHED and one.port == port]
    return {one.inode for one in rows} & socket_inodes(pid)


def has_closed(pid: int, inodes: set[str]) -> bool:
    """True once the process has none of these open: it knows of their end."""
    return not inodes & socket_inodes(pid)


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
