"""Linux's /proc: processes, their sockets, and the tables of TCP connections.

Where there is no /proc, or a process is not ours to look at, a function returns None, nothing or an
empty value unless it says that it raises OSError. Code that runs inside a rank reads /proc itself.
"""

from __future__ import annotations

import ipaddress
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

# States of a TCP socket (include/net/tcp_states.h)
ESTABLISHED: Final = 0x01
CLOSE_WAIT: Final = 0x08  # the peer has closed its end, and the program has not
LISTEN: Final = 0x0A

KERNEL_LOG: Final = Path("/dev/kmsg")
_MAX_RECORDS: Final = 100_000  # of the kernel's log at most; it holds fewer
_PROC: Final = Path("/proc")
_TCP_TABLES: Final = ("tcp", "tcp6")
_ENDED: Final = frozenset("ZXx")  # a zombie has ended, too
_CPU: Final = slice(11, 13)  # utime and stime
_WAIT_STATUS: Final = 49  # index of exit_code, as below
_STARTED: Final = 19  # index of starttime among the fields of stat from the third on
# struct pidfd_info of include/uapi/linux/pidfd.h: its mask, what we do not ask for, and the status.
_PIDFD_INFO: Final = struct.Struct("<Q52xi")
_EXIT_INFO: Final = 1 << 3
_PIDFD_GET_INFO: Final = 3 << 30 | _PIDFD_INFO.size << 16 | 0xFF << 8 | 11
_UNIX_UNCONNECTED: Final = "01"
_SOCKET: Final = r"socket:\[(\d+)\]"

Process = int | str
"""A pid, or `self`."""


# Processes


def pids() -> Iterator[int]:
    """Yield the pid of every process that this one can see."""
    with suppress(OSError):
        yield from (int(each.name) for each in _PROC.iterdir() if each.name.isdigit())


def folder(pid: Process) -> Path:
    """Return a process's folder, whether or not it exists."""
    return _PROC / str(pid)


def _read(pid: Process, name: str) -> str | None:
    with suppress(OSError):
        return (folder(pid) / name).read_bytes().decode("utf-8", "replace")
    return None


class Stat(NamedTuple):
    """Fields of proc(5) stat. `started`: in clock ticks since boot, as text."""

    state: str
    started: str
    cpu_seconds: float

    @property
    def ended(self) -> bool:
        """Whether the process has ended, although its parent has not waited for it yet."""
        return self.state in _ENDED


def stat(pid: Process) -> Stat | None:
    """Read a process's state; None where there is no such process to be seen."""
    # The field before, a name, may contain anything.
    fields = (_read(pid, "stat") or "").rpartition(")")[2].split()
    if len(fields) <= _STARTED:
        return None
    return Stat(fields[0], fields[_STARTED], sum(map(int, fields[_CPU])) / os.sysconf("SC_CLK_TCK"))


def wait_status(pid: Process) -> int | None:
    """Return the status that the parent of a zombie has still to wait for, as `os.wait` gives it.

    None where it has waited, or the process still runs.
    """
    fields = (_read(pid, "stat") or "").rpartition(")")[2].split()
    known = len(fields) > _WAIT_STATUS and fields[0] == "Z"
    return int(fields[_WAIT_STATUS]) if known else None


def reaped_status(pidfd: int) -> int | None:
    """Return the status with which a process has ended that its parent has waited for.

    None before that, and from a kernel older than 6.15.
    """
    try:
        import fcntl  # noqa: PLC0415  (Windows has none)

        about = fcntl.ioctl(pidfd, _PIDFD_GET_INFO, _PIDFD_INFO.pack(_EXIT_INFO, 0))
    except (ImportError, OSError):
        return None
    mask, status = _PIDFD_INFO.unpack(about)
    return int(status) if mask & _EXIT_INFO else None


def parent(pid: Process) -> int | None:
    """Return the pid of the process that started one, None where that is unknown."""
    text = status(pid).get("PPid", "")
    return int(text) if text.isdigit() else None


def runs(pid: Process) -> bool:
    """Whether a process exists and has not ended."""
    found = stat(pid)
    return found is not None and not found.ended


def start_time(pid: int) -> float | None:
    """Return when a process started, in seconds since the epoch; None where that is unknown."""
    found, boot = stat(pid), re.search(r"btime (\d+)", _read("", "stat") or "")
    if boot is None or found is None:
        return None
    return int(boot[1]) + int(found.started) / os.sysconf("SC_CLK_TCK")


def status(pid: Process) -> dict[str, str]:
    """Return the lines of proc(5) status by name."""
    lines = (_read(pid, "status") or "").splitlines()
    return {name: text.strip() for name, _, text in (line.partition(":") for line in lines)}


def program(pid: Process) -> str:
    """Return the name of a process's program, `?` where it is unknown."""
    return (_read(pid, "comm") or "?").strip()


def command_line(pid: Process) -> tuple[str, ...] | None:
    """Return a process's arguments, the program first; None where they cannot be read."""
    text = _read(pid, "cmdline")
    return None if text is None else tuple(text.split("\0")[:-1])


def environ(pid: Process) -> dict[str, str]:
    """Return the environment that a process was started with."""
    text = _read(pid, "environ") or ""
    return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)


def working_folder(pid: Process) -> Path | None:
    """Return a process's working directory."""
    with suppress(OSError):
        return (folder(pid) / "cwd").readlink()
    return None


def executable(pid: Process) -> Path:
    """Return the path of a process's program. Raises OSError."""
    return (folder(pid) / "exe").readlink()


def mappings(pid: Process) -> bytes:
    """Return the table of files mapped into a process. Raises OSError."""
    return (folder(pid) / "maps").read_bytes()


def namespace(kind: str, pid: Process = "self") -> str:
    """Return the identity of a process's namespace, such as `pid:[4026531836]`. Raises OSError."""
    return str((folder(pid) / "ns" / kind).readlink())


def boot_id() -> str:
    """Return the random identity of this boot of the machine. Raises OSError."""
    return (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()


def kernel_setting(name: str) -> int | None:
    """Return a number below /proc/sys/kernel, None where there is none."""
    with suppress(OSError, ValueError):
        return int((_PROC / "sys/kernel" / name).read_text("ascii"))
    return None


def user_ids_mapped() -> int:
    """Return how many user ids exist in our user namespace. Raises OSError, ValueError."""
    rows = (folder("self") / "uid_map").read_text("ascii").splitlines()
    return sum(int(row.split()[2]) for row in rows)


def cgroups() -> Iterator[tuple[str, str]]:
    """Yield the controllers ('' in version 2) and path of each cgroup of ours. Raises OSError."""
    for line in (folder("self") / "cgroup").read_text("ascii", "replace").splitlines():
        _, controllers, path = line.split(":", 2)
        yield controllers, path


def exists(pid: int) -> bool:
    """Whether there is such a process, also one that may not be seen; a zombie is one."""
    try:
        os.kill(pid, 0)
    except OSError as error:  # another user's is there
        return not isinstance(error, ProcessLookupError)
    return True


def kernel_records(log: Path) -> Iterator[bytes]:
    """Yield the present records of the kernel's log; none where we may not read it."""
    with suppress(OSError):  # BlockingIOError: there are no more
        handle = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        try:
            for _ in range(_MAX_RECORDS):
                # One that was overwritten in the meantime: the next read continues after it.
                with suppress(BrokenPipeError):
                    if not (record := os.read(handle, 8192)):
                        return
                    yield record
        finally:
            os.close(handle)


# Sockets


class TcpSocket(NamedTuple):
    """One row of the tables of TCP sockets, addresses as the kernel prints them.

    `queue` of a listener: connections that the program has not accepted.
    """

    local: str
    remote: str
    state: int
    queue: int
    uid: int
    inode: str

    @property
    def host(self) -> str:
        """The local address; an IPv4 address is never shown in its IPv6 form."""
        return decode_host(self.local)

    @property
    def remote_host(self) -> str:
        """The peer's address, in the same form."""
        return decode_host(self.remote)

    @property
    def port(self) -> int:
        """The local port."""
        return int(self.local.rpartition(":")[2], 16)

    @property
    def remote_port(self) -> int:
        """The peer's port, 0 for a listener."""
        return int(self.remote.rpartition(":")[2], 16)


def tcp_sockets(pid: Process = "self") -> Iterator[TcpSocket]:
    """Yield the TCP sockets in a process's network namespace. Raises OSError without /proc."""
    for table in _TCP_TABLES:
        path = folder(pid) / "net" / table
        if table == "tcp6" and not path.exists():  # a system without IPv6
            continue
        for row in path.read_text("ascii").splitlines()[1:]:
            cells = row.split()
            queue = int(cells[4].partition(":")[2], 16)
            state, uid = int(cells[3], 16), int(cells[7])
            yield TcpSocket(cells[1], cells[2], state, queue, uid, cells[9])


def decode_host(address: str) -> str:
    """Return the host of an address that the tables print: 32-bit words in host byte order."""
    packed = bytes.fromhex(address.partition(":")[0])
    words = struct.unpack(f">{len(packed) // 4}I", packed)
    found = ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))
    return str(getattr(found, "ipv4_mapped", None) or found)


def unix_socket(pid: Process, suffix: str) -> str:
    """Return the path of the Unix socket with a suffix on which a process listens, "" for none."""
    mine = socket_inodes(pid)
    with suppress(OSError):
        for line in (folder(pid) / "net/unix").read_text("utf-8", "replace").splitlines():
            *_, state, inode, path = [*line.split(maxsplit=7), ""][5:8]
            if path.endswith(suffix) and state == _UNIX_UNCONNECTED and inode in mine:
                return path
    return ""


def socket_inodes(pid: Process) -> set[str]:
    """Return the inodes of the sockets that a process holds."""
    found: set[str] = set()
    with suppress(OSError):
        for entry in (folder(pid) / "fd").iterdir():
            with suppress(OSError):
                if match := re.fullmatch(_SOCKET, str(entry.readlink())):
                    found.add(match[1])
    return found
