"""Inspects a running process of this machine: is it Python, and may we inject debugpy?"""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from dap_mux.pure.errors import DapMuxError, NothingToConnect, Refused, UsageError
from dap_mux.rank.environ import Place, place_of
from dap_mux.system import procfs

OLDEST_PYTHON: Final = (3, 8)  # that current debugpy supports
_PYTHON: Final = re.compile(rb"/(?:lib)?python(\d)\.(\d+)[^/]*$", re.MULTILINE)
_CAP_SYS_PTRACE: Final = 1 << 19  # CAP_SYS_PTRACE
_NOBODY_MAY_TRACE: Final = 3  # kernel.yama.ptrace_scope; 1: descendants only, 2: admin only


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

        It is the adapter that listens on two: the process is connected to the internal one.
        """
        mine = procfs.socket_inodes(self.pid)
        rows: list[procfs.TcpSocket] = []
        with suppress(OSError):  # it has ended
            rows += procfs.tcp_sockets(self.pid)
        connected = (row for row in rows if row.state == procfs.ESTABLISHED and row.inode in mine)
        remote = {row.remote_port for row in connected}
        listeners = {row.inode: row.port for row in rows if row.state == procfs.LISTEN}
        inner = {inode for inode, port in listeners.items() if port in remote}
        for adapter in _adapters():
            own = procfs.socket_inodes(adapter)
            if inner & own:
                return next((listeners[inode] for inode in own & listeners.keys() - inner), None)
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


def _adapters() -> Iterator[int]:
    for pid in procfs.pids():
        arguments = procfs.command_line(pid) or ()
        if any(argument.endswith("debugpy/adapter") for argument in arguments):
            yield pid


# The ranks among processes that a user has named, and among those that they have started.
#
# The variables that launchers set tell a rank from its launcher, which may be Python too (torchrun
# is), and from its own workers, which inherit its number.

Children: TypeAlias = Mapping[int, Sequence[int]]
_Key: TypeAlias = tuple[str | None, int | None]


def ranks_among(pids: Iterable[int]) -> list[RunningPython]:
    """Return the ranks that these processes are or have started, each one once.

    Raises `DapMuxError` if one of them is none of Python's and has started none either.
    """
    children = _children()
    found: list[RunningPython] = []
    for pid in pids:
        found += [each for each in _ranks_of(pid, children) if each not in found]
    return _without_workers(found, children)


def _ranks_of(pid: int, children: Children) -> list[RunningPython]:
    """Return a process itself, or the ranks that it has started if it is a launcher."""
    own = _key(place_of(procfs.environ(pid)))
    ranks: dict[_Key, RunningPython] = {}
    others: list[RunningPython] = []
    for process, is_outermost in _pythons_below(pid, children):
        key = _key(process.place)
        if key[1] is not None and key != own:
            ranks.setdefault(key, process)
        elif is_outermost:
            others.append(process)
    if ranks:
        return [*ranks.values()]
    try:
        return [RunningPython.read(pid)]
    except NothingToConnect:
        if not others:
            raise
        return others


def _without_workers(found: Sequence[RunningPython], children: Children) -> list[RunningPython]:
    """Leave out who has a rank's number and was started by it. Raises `UsageError`."""
    ranks: dict[_Key, RunningPython] = {}
    kept: list[RunningPython] = []
    # A worker may be named before its rank, as where numbers of processes have begun anew.
    for process in sorted(found, key=lambda one: _depth(one.pid)):
        key = _key(process.place)
        other = ranks.get(key) if key[1] is not None else None
        if other is None:
            ranks[key] = process
            kept.append(process)
        elif process.pid not in _below(other.pid, children):
            raise UsageError(
                f"duplicate rank {key[1]}: process {other.pid} and process {process.pid}; "
                "name the processes of one job only"
            )
    return [each for each in found if each in kept]


def _key(place: Place) -> _Key:
    return place.launcher, place.rank


def _depth(pid: int) -> int:
    depth = 0
    while (parent := procfs.parent(pid)) is not None and parent > 0:
        pid, depth = parent, depth + 1
    return depth


def _below(pid: int, children: Children) -> Iterator[int]:
    """Yield all descendants, parents before children."""
    waiting = [*children.get(pid, ())]
    while waiting:
        one = waiting.pop(0)
        yield one
        waiting += children.get(one, ())


def _pythons_below(pid: int, children: Children) -> Iterator[tuple[RunningPython, bool]]:
    """Yield the descendants that are Python and ours to look at, and whether none is above."""
    inside: set[int] = set()
    for one in _below(pid, children):
        try:
            process = RunningPython.read(one)
        except (DapMuxError, OSError):
            continue  # a shell, a daemon, or one that has just ended
        yield process, one not in inside
        inside.update(_below(one, children))


def _children() -> Children:
    found: dict[int, list[int]] = {}
    for pid in procfs.pids():
        parent = procfs.parent(pid)
        if parent is not None:
            found.setdefault(parent, []).append(pid)
    return {parent: sorted(pids) for parent, pids in found.items()}
