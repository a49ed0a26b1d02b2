"""Ranks' processes and clients' files on this machine: watched, read and hashed."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import time
import tokenize
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from dap_mux.pure.remote import MAX_COMPARED_BYTES
from dap_mux.system import procfs

if TYPE_CHECKING:
    from dap_mux.pure.insight.why.evidence import Process

T = TypeVar("T")
_IDENTITY: Final = r"([0-9a-f-]{36}) (pid:\[[0-9]{1,20}\]) ([0-9]{1,10}) ([0-9]{1,20})"
FIRST_POLL_INTERVAL_S: Final = 0.005  # doubling up to the longest
MAX_POLL_INTERVAL_S: Final = 0.32


def is_over(process: str) -> bool:
    """Whether a process has ended; False where that cannot be seen from here.

    `process` is the identity that a rank reports: the boot id of its machine, its pid namespace,
    its pid in there, and its start in clock ticks since boot. It is untrusted.
    """
    if (said := _identity_here(process)) is None:
        return False
    found = procfs.stat(said[3])
    if found is None:
        return not procfs.exists(int(said[3]))  # other users' processes may be hidden
    return found.ended or found.started != said[4]


def local_pid(process: str) -> int | None:
    """Return the pid of a process of this machine, which may have ended; None for others."""
    if process.isdecimal():
        return int(process)
    if (said := _identity_here(process)) is None:
        return None
    found = procfs.stat(said[3])
    return int(said[3]) if found is None or found.started == said[4] else None


class LocalProcesses:
    """Watches processes of this machine until they end, or are forgotten."""

    def __init__(self) -> None:
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def watch(self, token: int, process: str, tell: Callable[[bool | None], None]) -> None:
        """Report whether it runs, None if that cannot be seen; then report its end.

        A process that is about to end is not reported as running: it closes its sockets first.
        """
        if _identity_here(process) is None:
            asyncio.get_running_loop().call_soon(tell, None)
            return
        task = asyncio.get_running_loop().create_task(self._follow(process, tell))
        self._tasks[token] = task
        task.add_done_callback(lambda _: self._tasks.pop(token, None))

    def forget(self, token: int) -> None:
        """Watch this process no longer; others are ignored."""
        if token in self._tasks:
            self._tasks.pop(token).cancel()

    def close(self) -> None:
        """Stop watching."""
        for token in list(self._tasks):
            self.forget(token)

    async def _follow(self, process: str, tell: Callable[[bool | None], None]) -> None:
        pause = FIRST_POLL_INTERVAL_S
        while not is_over(process):
            await asyncio.sleep(pause)
            if pause < MAX_POLL_INTERVAL_S <= 2 * pause:
                tell(True)
            pause = min(2 * pause, MAX_POLL_INTERVAL_S)
        tell(False)


def _identity_here(process: str) -> re.Match[str] | None:
    """Return the parts of a process's identity, None for one of another machine or namespace."""
    said = re.fullmatch(_IDENTITY, process)
    with suppress(OSError):
        if said and (procfs.boot_id(), procfs.namespace("pid")) == (said[1], said[2]):
            return said
    return None


ADAPTER: Final = "debugpy/adapter"
Connections = dict[str, tuple[str, str]]
"""As `Process` has them."""
_KILLED: Final = re.compile(rb"[Oo]ut of memory: Killed process (\d+)")


class Threads:
    """Work in threads, of which a file on a network may take its time, that is not done yet."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Call `then` in the event loop with what `work` returns."""

        async def answer() -> None:
            then(await asyncio.to_thread(work))

        task = asyncio.get_running_loop().create_task(answer())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel all pending work."""
        for task in list(self._tasks):
            task.cancel()


def read_processes(identities: Iterable[str]) -> dict[str, Process]:
    """Return what the system shows of them, by identity; those of other machines are left out."""
    pids = _pids_of(identities)
    table = _connections(pids.values())
    ended = {pid for each, pid in pids.items() if procfs.stat(pid) is None}
    killed = (
        out_of_memory(b"\n".join(procfs.kernel_records(procfs.KERNEL_LOG)))
        if ended
        else frozenset[int]()
    )
    return {each: _process(pid, table.get(pid, {}), killed) for each, pid in pids.items()}


def _pids_of(identities: Iterable[str]) -> dict[str, int]:
    """Return the pids of those of this machine, by identity."""
    found: dict[str, int] = {}
    ports: dict[int, str] = {}
    for each in identities:
        if each.startswith(":"):
            ports[int(each[1:])] = each
        elif (pid := local_pid(each)) is not None:
            found[each] = pid
    if ports:
        listening = _listening(ports)
        found.update({ports[port]: pid for port, pid in listening.items()})
    return found


def _listening(ports: Container[int]) -> dict[int, int]:
    """Return the pids of those that listen on these ports, but for adapters of debugpy's.

    The system's tables are read once, however many ports it is: they may be long.
    """
    found: dict[int, int] = {}
    with suppress(OSError):
        sockets = {
            one.inode: one.port
            for one in procfs.tcp_sockets()
            if one.state == procfs.LISTEN and one.port in ports
        }
        for pid in procfs.pids() if sockets else ():
            for inode in procfs.socket_inodes(pid) & sockets.keys():
                found.setdefault(sockets[inode], pid)
    return {port: pid for port, pid in found.items() if not _is_adapter(pid)}


def _is_adapter(pid: int) -> bool:
    return any(ADAPTER in word for word in procfs.command_line(pid) or ())


def _process(pid: int, connections: Connections, killed: frozenset[int]) -> Process:
    from dap_mux.pure.insight.why.evidence import Process

    now = time.monotonic()
    found = procfs.stat(pid)
    if found is None or found.ended:
        return Process(pid, out_of_memory=pid in killed, at=now)
    return Process(pid, found.state, found.cpu_seconds, connections, _switches(pid), at=now)


_OF_LIBRARIES: Final = ("gloo_", "pt_")
"""How names of torch's threads begin, which Python does not know: gloo's wake 100 times a second,
nearly as often as one that waits for Python's global lock."""


def _switches(pid: int) -> dict[int, int]:
    """Return how often each thread that may be Python's has gone to sleep so far."""
    found: dict[int, int] = {}
    with suppress(OSError):
        for each in (procfs.folder(pid) / "task").iterdir():
            thread = procfs.status(f"{pid}/task/{each.name}")
            count = thread.get("voluntary_ctxt_switches", "")
            if count.isdigit() and not thread.get("Name", "").startswith(_OF_LIBRARIES):
                found[int(each.name)] = int(count)
    return found


def _connections(pids: Iterable[int]) -> Mapping[int, Connections]:
    """Return the TCP connections of each process."""
    found: dict[int, Connections] = {}
    tables: dict[str, list[procfs.TcpSocket]] = {}
    for pid in pids:
        inodes = procfs.socket_inodes(pid)
        with suppress(OSError):
            space = procfs.namespace("net", pid)
            if space not in tables:
                sockets = procfs.tcp_sockets(pid)
                tables[space] = [one for one in sockets if one.state == procfs.ESTABLISHED]
            found[pid] = {
                f"socket:[{one.inode}]": (
                    f"{one.host}:{one.port}",
                    f"{one.remote_host}:{one.remote_port}",
                )
                for one in tables[space]
                if one.inode in inodes
            }
    return found


def out_of_memory(log: bytes) -> frozenset[int]:
    """Return the pids that the kernel has killed for want of memory, or a control group has."""
    return frozenset(int(pid) for pid in _KILLED.findall(log))


Stamp: TypeAlias = tuple[int, int, int]
MAX_TEXT_BYTES: Final = 1024 * 1024
MAX_REMEMBERED: Final = 4096  # files
# A file changed this recently may change again without its time showing it.
MTIME_GRANULARITY_S: Final = 2.0  # s


class LocalFiles:
    """Digests of files, cached for as long as a file is unchanged."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Stamp, str]] = {}

    def digests(self, paths: Iterable[str]) -> dict[str, str]:
        """Return each path's digest, "" where there is no such file."""
        return {path: self._digest(path) for path in paths}

    def _digest(self, path: str) -> str:
        """As in ranks (`engine.source_files.probe`): for a large file only its size counts."""
        try:
            about = os.stat(path)  # noqa: PTH116
            if not stat.S_ISREG(about.st_mode) or not os.path.isabs(path):  # noqa: PTH117
                return ""
            if about.st_size > MAX_COMPARED_BYTES:
                return f"size:{about.st_size}"
            return self._hashed(path, (about.st_mtime_ns, about.st_size, about.st_ino))
        except (OSError, ValueError):
            return ""

    def _hashed(self, path: str, stamp: Stamp) -> str:
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            from hashlib import sha256  # with OpenSSL, which a start does without

            settled = time.time() - stamp[0] / 1e9 > MTIME_GRANULARITY_S  # before it is read
            with open(path, "rb") as file:  # noqa: PTH123
                known = stamp, sha256(file.read()).hexdigest()
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            if settled:
                self._known[path] = known
        return known[1]


def text_of(path: str) -> str:
    """Return the text of a file as Python reads it.

    "" where there is no such file, or where it is too large or no text.
    """
    try:
        about = os.stat(path)  # noqa: PTH116
        is_small = stat.S_ISREG(about.st_mode) and about.st_size <= MAX_TEXT_BYTES
        if not is_small or not os.path.isabs(path):  # noqa: PTH117
            return ""
        with tokenize.open(path) as file:
            return file.read()
    except (OSError, SyntaxError, ValueError):
        return ""
