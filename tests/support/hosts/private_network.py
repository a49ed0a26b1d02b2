"""A loopback of our own, in which packets can be made to vanish: for links that are half open.

A proxy cannot do that: its kernel goes on acknowledging. The whole test moves into a new network
namespace, with every process that it starts, and back at its end. Only root may do so.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET
_libc: Final = ctypes.CDLL(None, use_errno=True)


class PrivateNetwork:
    """127.0.0.0/8 without anybody else; each address may lose its packets, in both directions."""

    def lose(self, address: str) -> None:
        """From now on nothing comes from or to this address."""
        _ip("rule", "add", "pref", "10", "from", address, "blackhole")
        _ip("rule", "add", "pref", "11", "to", address, "blackhole")
        _ip("route", "flush", "cache")

    def is_quiet(self) -> bool:
        """Whether everything that was sent over TCP has been acknowledged."""
        lines = Path("/proc/thread-self/net/tcp").read_text("ascii").splitlines()[1:]
        return all(int(line.split()[4].partition(":")[0], 16) == 0 for line in lines)

    def find(self, address: str) -> None:
        """Packets come again."""
        _ip("rule", "del", "pref", "10", "from", address)
        _ip("rule", "del", "pref", "11", "to", address)
        _ip("route", "flush", "cache")


@contextmanager
def private_network() -> Iterator[PrivateNetwork]:
    """Live in a network namespace of our own until the block is left."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    _check(_libc.unshare(_NEW_NETWORK))
    try:
        _ip("link", "set", "lo", "up")
        _ip("rule", "add", "pref", "100", "lookup", "local")  # ours must come before it
        _ip("rule", "del", "pref", "0")
        yield PrivateNetwork()
    finally:
        _check(_libc.setns(home, _NEW_NETWORK))
        os.close(home)


def possible() -> bool:
    """Whether this test may have a network of its own."""
    ip = any((Path(folder) / "ip").exists() for folder in os.get_exec_path())
    return os.geteuid() == 0 and ip and Path("/proc/self/ns/net").exists()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def connect_in(namespace: str, host: str, port: int) -> socket.socket:
    """Connect within another network namespace; the socket stays there. Call it in a thread.

    A thread is where it is by itself, and this one goes home again.
    """
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        _check(_libc.setns(there, _NEW_NETWORK))
        return socket.create_connection((host, port), timeout=30)
    finally:
        _check(_libc.setns(home, _NEW_NETWORK))
        os.close(home)
        os.close(there)
