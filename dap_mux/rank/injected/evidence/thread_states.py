"""What the system knows of a process's threads: their states, and the system calls they are in.

It is read from /proc, so only of Linux; elsewhere nothing is told.
"""

from __future__ import annotations

import os
from typing import Any

HERE = "/proc/self"
NAMES = {
    "x86_64": {
        0: "read", 1: "write", 2: "open", 7: "poll", 17: "pread64", 18: "pwrite64",
        19: "readv", 20: "writev", 23: "select", 35: "nanosleep", 42: "connect",
        43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg",
        61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 202: "futex",
        219: "restart_syscall", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid",
        257: "openat", 262: "newfstatat", 270: "pselect6", 271: "ppoll",
        281: "epoll_pwait", 288: "accept4", 295: "preadv", 332: "statx",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 32: "flock", 56: "openat", 63: "read", 64: "write",
        65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 69: "preadv",
        72: "pselect6", 73: "ppoll", 79: "newfstatat", 82: "fsync", 83: "fdatasync",
        95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep",
        128: "restart_syscall", 202: "accept", 203: "connect", 206: "sendto",
        207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept4", 260: "wait4",
        291: "statx",
    },
}  # fmt: skip
"""The system calls in which a thread may stay, by number."""
OF_A_DESCRIPTOR = frozenset({
    "accept", "accept4", "connect", "epoll_pwait", "epoll_wait", "fcntl", "fdatasync", "flock",
    "fsync", "pread64", "preadv", "pwrite64", "read", "readv", "recvfrom", "recvmsg", "sendmsg",
    "sendto", "write", "writev",
})  # fmt: skip
"""Those whose first argument is one."""


def thread_state(tid: int, process: str = HERE) -> dict[str, Any]:
    """Return the fields of a thread that the system knows, those that could be read.

    `process`: the folder of another process than this one.
    """
    found: dict[str, Any] = {"tid": tid}
    try:
        state, *numbers = _read(process, tid, "stat").rpartition(")")[2].split()
        used = int(numbers[10]) + int(numbers[11])
        found.update(state=state, cpu=used / os.sysconf("SC_CLK_TCK"))
        found["switches"] = _switches(process, tid)
        number, *arguments = _read(process, tid, "syscall").split()
        if number.isdigit():  # else it runs, or waits without having called
            found["system_call"] = name = system_call(int(number))
            if name in OF_A_DESCRIPTOR:
                # The upper half of the register means nothing in an int.
                descriptor = int(arguments[0], 16) & 0xFFFFFFFF
                found["file"] = os.readlink(f"{process}/fd/{descriptor}")  # noqa: PTH115
    except (OSError, ValueError, IndexError):
        pass  # no /proc, one that shows less, or the thread has gone
    return found


MAX_CHILDREN = 16
MAX_NAME = 200
TOLD_OF_CHILDREN = ("state", "system_call", "file")
NOT_THE_PROGRAMS = ("resource_tracker", "debugpy")


def children(process: str = HERE) -> list[dict[str, Any]]:
    """Return the state of the main thread of each process that this one has started."""
    pids: list[str] = []
    try:
        for tid in os.listdir(f"{process}/task"):  # noqa: PTH208
            pids += _read(process, int(tid), "children").split()
    except (OSError, ValueError):
        pass  # a system that does not tell, or a thread that has gone
    found = [_child(int(pid)) for pid in sorted(pids, key=int)[:MAX_CHILDREN]]
    return [one for one in found if not any(name in one["name"] for name in NOT_THE_PROGRAMS)]


def _child(pid: int) -> dict[str, Any]:
    told: dict[str, Any] = thread_state(pid, f"/proc/{pid}")
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            name = " ".join(file.read(MAX_NAME).split("\0")).strip()
    except OSError:
        name = ""
    known = {name: value for name, value in told.items() if name in TOLD_OF_CHILDREN}
    return {"pid": pid, "name": name, **known}


def _switches(process: str, tid: int) -> int:
    """Return how often a thread has given up its processor: one that waits does so once."""
    for line in _read(process, tid, "status").splitlines():
        name, _, count = line.partition(":")
        if name == "voluntary_ctxt_switches":
            return int(count)
    return 0


def system_call(number: int) -> str:
    """Return a system call's name, or its number as text."""
    return NAMES.get(os.uname().machine, {}).get(number) or str(number)


def _read(process: str, tid: int, name: str) -> str:
    with open(f"{process}/task/{tid}/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read()
