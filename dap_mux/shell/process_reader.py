"""Reads the state of ranks' processes on this machine, in a thread."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dap_mux import procfs
from dap_mux.engine import inputs, outputs
from dap_mux.shell.local_processes import local_pid

if TYPE_CHECKING:
    from dap_mux.insight.why.evidence import Process

KERNEL_LOG: Final = Path("/dev/kmsg")
ADAPTER: Final = "debugpy/adapter"
MAX_LOG_BYTES: Final = 1 << 20
Connections = dict[str, tuple[str, str]]
"""As `Process` has them."""
_KILLED: Final = re.compile(rb"[Oo]ut of memory: Killed process (\d+)")


class ProcessReader:
    """Carries out `outputs.ReadProcesses`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def read(
        self, output: outputs.ReadProcesses, tell: Callable[[inputs.ProcessesRead], None]
    ) -> None:
        """Answer with those that are of this machine."""
        task = asyncio.get_running_loop().create_task(_read(output, tell))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel all pending work."""
        for task in list(self._tasks):
            task.cancel()


async def _read(
    output: outputs.ReadProcesses, tell: Callable[[inputs.ProcessesRead], None]
) -> None:
    found = await asyncio.to_thread(read_processes, output.processes)
    tell(inputs.ProcessesRead(output.token, found))


def read_processes(identities: Iterable[str]) -> dict[str, Process]:
    """Return what the system shows of them, by identity; those of other machines are left out."""
    pids = _pids_of(identities)
    table = _connections(pids.values())
    ended = {pid for each, pid in pids.items() if procfs.stat(pid) is None}
    killed = out_of_memory(_kernel_log()) if ended else frozenset[int]()
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
    from dap_mux.insight.why.evidence import Process  # noqa: PLC0415  (3 ms of a start)

    now = time.monotonic()
    found = procfs.stat(pid)
    if found is None or found.ended:
        return Process(pid, out_of_memory=pid in killed, at=now)
    return Process(pid, found.state, found.cpu_seconds, connections, _switches(pid), at=now)


def _switches(pid: int) -> dict[int, int]:
    """Return how often each thread that waits in a futex has gone to sleep so far."""
    found: dict[int, int] = {}
    with suppress(OSError):
        for each in (procfs.folder(pid) / "task").iterdir():
            thread = procfs.status(f"{pid}/task/{each.name}")
            count = thread.get("voluntary_ctxt_switches", "")
            if count.isdigit():
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


def _kernel_log() -> bytes:
    """Return the newest of the kernel's records, nothing where we may not read them."""
    try:
        log = os.open(KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    records: list[bytes] = []
    try:
        with suppress(OSError):  # BlockingIOError: no more
            while sum(map(len, records)) < MAX_LOG_BYTES:
                records.append(os.read(log, 8192))
    finally:
        os.close(log)
    return b"\n".join(records)


def out_of_memory(log: bytes) -> frozenset[int]:
    """Return the pids that the kernel has killed for want of memory, or a control group has."""
    return frozenset(int(pid) for pid in _KILLED.findall(log))
