"""A running process of this machine, read from Linux's /proc: is it Python, and may we go in?"""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dap_mux.errors import DapMuxError, NothingToConnect, Refused

PROC: Final = Path("/proc")
OLDEST_PYTHON: Final = (3, 8)  # that today's debugpy runs in
_PYTHON: Final = re.compile(rb"/(?:lib)?python(\d)\.(\d+)[^/]*$", re.MULTILINE)
_CAP_SYS_PTRACE: Final = 1 << 19  # CAP_SYS_PTRACE
_ANY_DESCENDANT: Final = 1
_ADMIN_ONLY: Final = 2
_NOBODY_MAY_TRACE: Final = 3
_ESTABLISHED: Final = "01"
_LISTEN: Final = "0A"


@dataclass(frozen=True)
class RunningPython:
    """A process of Python; `version` is its two numbers."""

    pid: int
    version: tuple[int, int]

    @classmethod
    def read(cls, pid: int) -> RunningPython:
        """Look at it. Raises `DapMuxError` where it is none, or where we may not go in."""
        folder = PROC / str(pid)
        if not sys.platform.startswith("linux"):
            raise DapMuxError("pid: needs Linux; start the program with `dap-mux run` instead")
        if not folder.exists():
            raise NothingToConnect(f"there is no process {pid}; `pgrep -af python` lists yours")
        _refuse_strangers(pid, folder)
        found = _PYTHON.search((folder / "maps").read_bytes().replace(b" (deleted)", b""))
        if found is None:
            raise NothingToConnect(f"process {pid} ({_program(folder)}) is not a Python process")
        version = int(found[1]), int(found[2])
        if version < OLDEST_PYTHON:
            raise DapMuxError(
                f"process {pid} runs Python {version[0]}.{version[1]}, which debugpy cannot "
                f"debug: it takes {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or later"
            )
        return cls(pid, version)

    @property
    def environ(self) -> dict[str, str]:
        """What it was started with; {} once it has ended."""
        with suppress(OSError):
            text = (PROC / str(self.pid) / "environ").read_bytes().decode("utf-8", "replace")
            return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
        return {}

    @property
    def runs(self) -> bool:
        """Whether it is still there, and no zombie."""
        with suppress(OSError):
            stat = (PROC / str(self.pid) / "stat").read_text("utf-8", "replace")
            return stat.rpartition(")")[2].split()[0] not in "ZX"
        return False

    def listening_port(self) -> int | None:
        """The port of its debugpy's adapter, which is a process of its own; None without one.

        It is the one whose inner port the process is connected to.
        """
        mine = _inodes(self.pid)
        rows = list(_sockets(self.pid))
        remote = {row.remote for row in rows if row.state == _ESTABLISHED and row.inode in mine}
        inner = {row.inode for row in rows if row.state == _LISTEN and row.local in remote}
        for adapter, words in _adapters():
            if inner & _inodes(adapter):
                with suppress(ValueError, IndexError):
                    return int(words[words.index("--port") + 1])
        return None


def refuse_to_trace(process: RunningPython) -> None:
    """Say why gdb could not go in, where that is known beforehand. Raises `Refused`."""
    status = _status(PROC / str(process.pid))
    tracer = int(status.get("TracerPid", "0"))
    if tracer:
        name = _program(PROC / str(tracer))
        raise Refused(
            f"process {process.pid} is traced by {name} (process {tracer}) already; end that first"
        )
    scope = _ptrace_scope()
    allowed = int(_status(PROC / "self").get("CapEff", "0"), 16) & _CAP_SYS_PTRACE
    if scope == _NOBODY_MAY_TRACE or (scope and not allowed):
        raise Refused(
            f"process {process.pid}: this system forbids attaching to a running process "
            f"(kernel.yama.ptrace_scope is {scope}); `sudo sysctl kernel.yama.ptrace_scope=0` "
            "allows it until the next boot, in a container the capability SYS_PTRACE does"
        )


@dataclass(frozen=True)
class _Socket:
    local: int
    remote: int
    state: str
    inode: str


def _refuse_strangers(pid: int, folder: Path) -> None:
    """Another user's process, or one that sees other files or another network."""
    try:
        owner = folder.stat().st_uid
    except FileNotFoundError:
        raise NothingToConnect(f"process {pid} has just ended") from None
    try:
        if os.geteuid() not in (0, owner):
            raise Refused(
                f"process {pid} belongs to {_user(owner)}; run dap-mux as that user, or as root"
            )
        for kind in ("mnt", "net"):
            if (folder / "ns" / kind).readlink() != (PROC / "self" / "ns" / kind).readlink():
                raise Refused(
                    f"process {pid} runs in a container, or a network of its own; "
                    "run dap-mux in there"
                )
    except PermissionError:
        raise Refused(
            f"this system does not let us look at process {pid}, of {_user(owner)}"
        ) from None
    except FileNotFoundError:
        raise NothingToConnect(f"process {pid} has just ended") from None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _program(folder: Path) -> str:
    with suppress(OSError):
        return (folder / "comm").read_text("utf-8", "replace").strip()
    return "?"


def _status(folder: Path) -> dict[str, str]:
    with suppress(OSError):
        lines = (folder / "status").read_text("utf-8", "replace").splitlines()
        return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}
    return {}


def _ptrace_scope() -> int:
    with suppress(OSError, ValueError):
        return int((PROC / "sys/kernel/yama/ptrace_scope").read_text("ascii"))
    return 0


def _adapters() -> Iterator[tuple[int, list[str]]]:
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                text = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
                if "debugpy/adapter\0" in text:
                    yield int(entry.name), text.split("\0")


def _inodes(pid: int) -> set[str]:
    """The sockets that a process holds."""
    found: set[str] = set()
    with suppress(OSError):
        for entry in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                target = str(entry.readlink())
                if target.startswith("socket:["):
                    found.add(target[len("socket:[") : -1])
    return found


def _sockets(pid: int) -> Iterator[_Socket]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            rows = (PROC / str(pid) / "net" / table).read_text("ascii").splitlines()[1:]
            for cells in map(str.split, rows):
                local, remote = (int(cells[at].rpartition(":")[2], 16) for at in (1, 2))
                yield _Socket(local, remote, cells[3], cells[9])
