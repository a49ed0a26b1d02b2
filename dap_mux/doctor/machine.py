"""This machine's ports and processes, read from Linux's /proc: nobody is connected to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

_ESTABLISHED: Final = "01"
_CLOSE_WAIT: Final = "08"  # the other side has left, and the program has not noticed
_LISTEN: Final = "0A"
_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_HEX_DIGITS_PER_WORD: Final = (
    8  # hexadecimal digits; the kernel prints addresses in words of the machine's order
)
_HALTED_STATES: Final = "TtZ"
FORWARDERS: Final = frozenset(
    {"docker-proxy", "kubectl", "oc", "rootlessport", "slirp4netns", "socat", "ssh", "sshd"}
)


class Socket(NamedTuple):
    """One row of /proc/net/tcp; `queue` of a listener: connections that nobody has taken."""

    host: str
    port: int
    remote_port: int
    state: str
    queue: int
    inode: str


@dataclass(frozen=True)
class Process:
    """A process of this machine; `state` is proc(5)'s letter."""

    pid: int
    words: tuple[str, ...] = ()
    state: str = ""
    debugs: bool = False  # pydevd is loaded in it

    @property
    def name(self) -> str:
        """The program's name: of what a Python runs, the script's or the module's."""
        words = self.words[1:] if self.is_python else self.words
        if words[:1] == ("-m",):
            words = words[1:]
        named = words[0] if words and not words[0].startswith("-") else (*self.words, "?")[0]
        return Path(named).name

    @property
    def is_adapter(self) -> bool:
        """Whether it is debugpy's adapter."""
        return any(word.rstrip("/").endswith("debugpy/adapter") for word in self.words)

    @property
    def is_python(self) -> bool:
        """Whether it is run by a Python."""
        return bool(self.words) and Path(self.words[0]).name.startswith("python")

    @property
    def folder(self) -> Path | None:
        """Where it runs; None where we may not look."""
        with suppress(OSError):
            return Path(f"/proc/{self.pid}/cwd").readlink()
        return None

    @property
    def forwards(self) -> bool:
        """Whether it is known to carry ports to other places."""
        return self.name in FORWARDERS

    @property
    def is_ours(self) -> bool:
        """Whether it is a dap-mux."""
        return self.name == "dap-mux" or self.words[1:3] == ("-m", "dap_mux")

    @property
    def is_halted(self) -> bool:
        """Whether it can answer nobody: suspended, or dead and not waited for."""
        return self.state[:1] in _HALTED_STATES if self.state else False

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


@dataclass(frozen=True)
class Machine:
    """The sockets of this machine at one moment. `known`: this system tells them."""

    sockets: tuple[Socket, ...] = ()
    known: bool = True
    _holders: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls) -> Machine:
        """Look now."""
        try:
            sockets = tuple(_sockets())
        except OSError:
            return cls(known=False)
        return cls(sockets, _holders={inode: pid for pid in pids() for inode in _inodes(pid)})

    def listener(self, host: str, port: int) -> Socket | None:
        """Who a connection to a loopback address would reach."""
        listening = (each for each in self.sockets if each.state == _LISTEN and each.port == port)
        return next((each for each in listening if _covers(each.host, host)), None)

    def holder(self, socket: Socket) -> Process | None:
        """The process that holds a socket; None where we may not look."""
        pid = self._holders.get(socket.inode)
        return process(pid) if pid is not None else None

    def clients(self, listener: Socket) -> list[Process | None]:
        """Who is connected to a listener's port; None for who is elsewhere, or not ours to see."""
        there = self._accepted(listener, _ESTABLISHED)
        ends = {(each.port, each.remote_port): each for each in self.sockets}
        return [
            self.holder(other) if other else None
            for other in (ends.get((each.remote_port, each.port)) for each in there)
        ]

    def left(self, listener: Socket) -> int:
        """How many connections to a listener the other side has ended, unnoticed."""
        return len(self._accepted(listener, _CLOSE_WAIT))

    def _accepted(self, listener: Socket, state: str) -> list[Socket]:
        mine = self._holders.get(listener.inode)
        return [
            each
            for each in self.sockets
            if (each.state, each.port) == (state, listener.port)
            and self._holders.get(each.inode) == mine
        ]

    def debugpy_ports(self) -> Iterator[tuple[int, Process]]:
        """Every port on which a debugpy that nobody debugs waits for that.

        Nobody's, so not the port on which an adapter has its debuggee: there it is connected.
        """
        for each in self.sockets:
            holder = self.holder(each) if each.state == _LISTEN else None
            if holder and holder.is_adapter and not self.clients(each):
                yield each.port, holder


def process(pid: int) -> Process | None:
    """Look at a process; None where there is none."""
    folder = Path(f"/proc/{pid}")
    try:
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
        state = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].strip()[:1]
    except OSError:
        return None
    return Process(pid, tuple(words), state, _has_pydevd(folder))


def pids() -> Iterator[int]:
    """Every process that this one can see."""
    with suppress(OSError):
        yield from (int(one.name) for one in Path("/proc").iterdir() if one.name.isdigit())


def _has_pydevd(folder: Path) -> bool:
    """Its compiled part is mapped; where pydevd runs without one this cannot be told."""
    with suppress(OSError):
        return b"/pydevd_" in (folder / "maps").read_bytes()
    return False


def _inodes(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found = re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink()))
                if found:
                    yield found[1]


def _sockets() -> Iterator[Socket]:
    for table in _TABLES:
        if not table.exists():
            continue
        for row in table.read_text("ascii").splitlines()[1:]:
            cells = row.split()
            host, port = cells[1].rsplit(":", 1)
            remote = cells[2].rsplit(":", 1)[1]
            queue = cells[4].rsplit(":", 1)[1]
            yield Socket(
                _address(host), int(port, 16), int(remote, 16), cells[3], int(queue, 16), cells[9]
            )


def _address(text: str) -> str:
    words = (
        text[at : at + _HEX_DIGITS_PER_WORD] for at in range(0, len(text), _HEX_DIGITS_PER_WORD)
    )
    raw = b"".join(bytes.fromhex(word)[::-1] for word in words)
    found = ipaddress.ip_address(raw)
    return str(getattr(found, "ipv4_mapped", None) or found)


def _covers(bound: str, host: str) -> bool:
    """Whether a socket bound to one address hears connections to another."""
    if bound in ("0.0.0.0", "::"):  # noqa: S104 - what somebody else has bound
        return True
    wanted = ("127.0.0.1", "::1") if host == "localhost" else (host.strip("[]"),)
    return bound in wanted


def named(processes: Iterable[Process | None]) -> str:
    """Who they are, in a few words."""
    return ", ".join(str(each) if each else "a process not ours to see" for each in processes)
