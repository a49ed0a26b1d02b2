"""Inspects a running process of this machine: is it Python, and may we inject debugpy?"""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from dap_mux import procfs
from dap_mux.errors import DapMuxError, NothingToConnect, Refused
from dap_mux.rank.environ import Place, place_of

OLDEST_PYTHON: Final = (3, 8)  # that current debugpy supports
_PYTHON: Final = re.compile(rb"/(?:lib)?python(\d)\.(\d+)[^/]*$", re.MULTILINE)
_CAP_SYS_PTRACE: Final = 1 << 19  # CAP_SYS_PTRACE
_ANY_DESCENDANT: Final = 1
_ADMIN_ONLY: Final = 2
_NOBODY_MAY_TRACE: Final = 3


@dataclass(frozen=True)
class RunningPython:
    """A Python process; `version`: major and minor."""

    pid: int
    version: tuple[int, int]

    @classmethod
    def read(cls, pid: int) -> RunningPython:
        """Inspect a process. Raises `DapMuxError` if it is not Python, or not ours to debug."""
        if not sys.platform.startswith("linux"):
            raise DapMuxError("pid: needs Linux; start the program with `dap-mux run` instead")
        if not procfs.folder(pid).exists():
            raise NothingToConnect(f"no process {pid}; `pgrep -af python` lists yours")
        _refuse_strangers(pid)
        found = _PYTHON.search(procfs.mappings(pid).replace(b" (deleted)", b""))
        if found is None:
            raise NothingToConnect(f"process {pid} ({procfs.program(pid)}) is not a Python process")
        version = int(found[1]), int(found[2])
        if version < OLDEST_PYTHON:
            raise DapMuxError(
                f"process {pid} runs Python {version[0]}.{version[1]}, which debugpy does "
                f"not support: it needs {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or later"
            )
        return cls(pid, version)

    @property
    def environ(self) -> dict[str, str]:
        """The environment that it was started with; {} once it has ended."""
        return procfs.environ(self.pid)

    @property
    def place(self) -> Place:
        """Where it stands in its job, by the variables of its launcher."""
        return place_of(self.environ)

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return procfs.runs(self.pid)

    def listening_port(self) -> int | None:
        """The port of its debugpy's adapter, a separate process; None without one.

        It is the adapter whose internal port the process is connected to.
        """
        mine = procfs.socket_inodes(self.pid)
        rows: list[procfs.TcpSocket] = []
        with suppress(OSError):  # it has ended
            rows += procfs.tcp_sockets(self.pid)
        connected = (row for row in rows if row.state == procfs.ESTABLISHED and row.inode in mine)
        remote = {row.remote_port for row in connected}
        listeners = (row for row in rows if row.state == procfs.LISTEN)
        inner = {row.inode for row in listeners if row.port in remote}
        for adapter, arguments in _adapters():
            if inner & procfs.socket_inodes(adapter):
                with suppress(ValueError, IndexError):
                    return int(arguments[arguments.index("--port") + 1])
        return None


def refuse_to_trace(process: RunningPython) -> None:
    """Raise `Refused` if it is known beforehand that a native debugger cannot attach."""
    status = procfs.status(process.pid)
    tracer = int(status.get("TracerPid", "0"))
    if tracer:
        name = procfs.program(tracer)
        raise Refused(
            f"process {process.pid} is already traced by {name} (process {tracer}); end that first"
        )
    scope = _ptrace_scope()
    allowed = int(procfs.status("self").get("CapEff", "0"), 16) & _CAP_SYS_PTRACE
    if scope == _NOBODY_MAY_TRACE or (scope and not allowed):
        raise Refused(
            f"process {process.pid}: this system forbids attaching to a running process "
            f"(kernel.yama.ptrace_scope is {scope}); `sudo sysctl kernel.yama.ptrace_scope=0` "
            "allows it until the next boot; in a container, the capability SYS_PTRACE is needed"
        )


def _refuse_strangers(pid: int) -> None:
    """Refuse another user's process, and one with other files or another network."""
    try:
        owner = procfs.folder(pid).stat().st_uid
    except FileNotFoundError:
        raise NothingToConnect(f"process {pid} has just ended") from None
    try:
        if os.geteuid() not in (0, owner):
            raise Refused(
                f"process {pid} belongs to {_user(owner)}; run dap-mux as that user, or as root"
            )
        for kind in ("mnt", "net"):
            if procfs.namespace(kind, pid) != procfs.namespace(kind):
                raise Refused(
                    f"process {pid} runs in a container, or in a network of its own; "
                    "run dap-mux inside it"
                )
    except PermissionError:
        raise Refused(
            f"this system does not allow inspecting process {pid} of {_user(owner)}"
        ) from None
    except FileNotFoundError:
        raise NothingToConnect(f"process {pid} has just ended") from None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _ptrace_scope() -> int:
    return procfs.kernel_setting("yama/ptrace_scope") or 0


def _adapters() -> Iterator[tuple[int, tuple[str, ...]]]:
    for pid in procfs.pids():
        arguments = procfs.command_line(pid) or ()
        if any(argument.endswith("debugpy/adapter") for argument in arguments):
            yield pid, arguments
