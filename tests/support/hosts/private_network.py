"""A loopback of our own, in which packets can be made to vanish: for links that are half open.

And other networks beside it, each at the far end of a cable, and what runs in them.

A proxy cannot do that: its kernel goes on acknowledging. The whole test moves into a new network
namespace, with every process that it starts, and back at its end. Only root may do so.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

_NEW_NETWORK: Final = 0x40000000  # CLONE_NEWNET
_libc: Final = ctypes.CDLL(None, use_errno=True)


class PrivateNetwork:
    """127.0.0.0/8 without anybody else; each address may lose its packets, in both directions."""

    def lose(self, address: str) -> None:
        """From now on nothing comes from or to this address."""
        ip("rule", "add", "pref", "10", "from", address, "blackhole")
        ip("rule", "add", "pref", "11", "to", address, "blackhole")
        ip("route", "flush", "cache")

    def is_quiet(self) -> bool:
        """Whether everything that was sent over TCP has been acknowledged."""
        lines = Path("/proc/thread-self/net/tcp").read_text("ascii").splitlines()[1:]
        return all(int(line.split()[4].partition(":")[0], 16) == 0 for line in lines)

    def find(self, address: str) -> None:
        """Packets come again."""
        ip("rule", "del", "pref", "10", "from", address)
        ip("rule", "del", "pref", "11", "to", address)
        ip("route", "flush", "cache")


@contextmanager
def private_network() -> Iterator[PrivateNetwork]:
    """Live in a network namespace of our own until the block is left."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    _check(_libc.unshare(_NEW_NETWORK))
    try:
        ip("link", "set", "lo", "up")
        ip("rule", "add", "pref", "100", "lookup", "local")  # ours must come before it
        ip("rule", "del", "pref", "0")
        yield PrivateNetwork()
    finally:
        _check(_libc.setns(home, _NEW_NETWORK))
        os.close(home)


def possible() -> bool:
    """Whether this test may have a network of its own."""
    ip = any((Path(folder) / "ip").exists() for folder in os.get_exec_path())
    return os.geteuid() == 0 and ip and Path("/proc/self/ns/net").exists()


def ip(*words: str) -> str:
    """What this command prints."""
    done = subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=30)
    return done.stdout


def plug_in(namespace: str, cable: str, device: str, address: str) -> None:
    """Make a network whose only `device` is the far end of a `cable`."""
    ip("netns", "add", namespace)
    ip("link", "add", cable, "type", "veth", "peer", "name", device, "netns", namespace)
    ip("-n", namespace, "addr", "add", address, "dev", device)
    for each in ("lo", device):
        ip("-n", namespace, "link", "set", each, "up")


def inside(namespace: str) -> list[str]:
    """What runs the words behind it in another network, and sees the same files."""
    return ["nsenter", f"--net=/run/netns/{namespace}"]


def kill_all_in(namespace: str) -> bool:
    """Whether there was anybody: who was just being started is there at the next look."""
    found = ip("netns", "pids", namespace).split()
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    return bool(found)


async def logged(log: Path, *words: str | Path, **options: Any) -> asyncio.subprocess.Process:
    """Start a program without input; what it prints is added to a file."""
    with log.open("ab") as out:
        return await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=out, **options
        )


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
