"""Looks at all ranks of this machine from outside, and prints what it has seen as one line of JSON.

A session sends this module, with those that it imports, to a host or into a pod, where that Python
runs it: the standard library, nothing of ours, Python 3.8 or later.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from typing import Any

from dap_mux.rank.environ import Place, claimed_place
from dap_mux.rank.injected.evidence.thread_states import thread_state
from dap_mux.rank.outside.python_memory import NO_RIGHT, PythonProcess, Unreadable

MARK = "dap-mux has seen: "
"""The beginning of the line: a login may print others."""
LOOKS = 3
INTERVAL_S = 0.3
MAX_RANKS = 64
MAX_SOURCE_BYTES = 256 << 10
MAX_SOURCES_BYTES = 2 << 20
PY_SPY_TIMEOUT_S = 4.0
ADAPTER = "debugpy/adapter"
ESTABLISHED = "01"
# As `evidence.is_library`: the session needs the text of the program's own files only.
LIBRARY = re.compile(r"[/\\]lib(?:64)?[/\\]python\d|site-packages|dist-packages|^<")
SOCKET = re.compile(r"socket:\[(\d+)\]")
LOOPBACK = re.compile(r"localhost|127\..*|::1")
JOB_NAMES = ("PMIX_NAMESPACE", "PMI_JOBID", "PMI_PORT")
"""Variables of MPI that differ between jobs, which have no MASTER_ADDR there."""


class Seen:
    """A rank's process, and what is seen of it. `parents`: its ancestors."""

    def __init__(self, pid: int, place: Place, environ: dict[str, str], words: list[str]) -> None:
        self.pid = pid
        self.place = place
        self.job = _job_of(environ)
        self.words = words
        self.parents = _parents(pid)
        self.reader: PythonProcess | None = None
        self.problem = ""
        self.looks: list[dict[str, Any]] = []

    @property
    def is_for_py_spy(self) -> bool:
        """Whether py-spy may be able to read what this program is not."""
        return self.reader is None and not self.problem.startswith(NO_RIGHT)

    def open(self) -> None:
        """Find its stacks, or why they cannot be read."""
        try:
            self.reader = PythonProcess(self.pid)
        except Unreadable as error:
            self.problem = str(error)

    @property
    def key(self) -> tuple[str | None, int | None]:
        """The launcher, and the number that it gave."""
        return self.place.launcher, self.place.rank


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read()


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208


def _status(pid: int | str, name: str) -> str:
    for line in _text(f"/proc/{pid}/status").splitlines():
        if line.startswith(name + ":"):
            return line.partition(":")[2].strip()
    return ""


def _parents(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1 and len(found) < 1000:
        try:
            pid = int(_status(pid, "PPid") or 0)
        except (OSError, ValueError):
            break
        found.append(pid)
    return found


def _job_of(environ: dict[str, str]) -> str:
    """Return what ranks of one job have in common, and those of others have not; "" if unknown."""
    address, port = environ.get("MASTER_ADDR", ""), environ.get("MASTER_PORT", "")
    if address and port:
        here = f" on {socket.gethostname()}" if LOOPBACK.fullmatch(address) else ""
        return f"{address}:{port}{here}"
    if "SLURM_JOB_ID" in environ:
        return f"{environ['SLURM_JOB_ID']}.{environ.get('SLURM_STEP_ID', '')}".rstrip(".")
    return next((environ[name] for name in JOB_NAMES if environ.get(name)), "")


def find(only: dict[str, str], everybody: bool) -> tuple[list[Seen], int]:
    """Return the ranks, and how many more are in networks of their own.

    `only`: variables that they must have. `everybody`: those of other users, too.
    """
    here = _network("self")
    found = [seen for pid in _pids() if (seen := _rank(pid, only, everybody)) is not None]
    near = [one for one in found if _network(one.pid) == here]
    return _without_others(near), len(found) - len(near)


def _network(pid: int | str) -> int:
    """Return what tells a process's network from others; its namespace needs more rights."""
    try:
        return os.stat(f"/proc/{pid}/net/tcp").st_ino  # noqa: PTH116
    except OSError:
        return -1


def _is_python(pid: int, words: list[str]) -> bool:
    """Whether a process is Python: by its program, by what it was called where that is secret."""
    return "python" in os.path.basename(_link(f"/proc/{pid}/exe") or "".join(words[:1]))  # noqa: PTH119


def _rank(pid: int, only: dict[str, str], everybody: bool) -> Seen | None:
    """Return the rank that a process is; None for any other."""
    try:
        if not everybody and os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116
            return None
        words = _text(f"/proc/{pid}/cmdline").split("\0")[:-1]
        pairs = _text(f"/proc/{pid}/environ").split("\0")
    except OSError:  # it has ended, or is not ours
        return None
    environ = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    place = claimed_place(environ, {}, words, pid)
    if place is None or pid == os.getpid() or not _is_python(pid, words):
        return None
    if any(environ.get(name) != value for name, value in only.items()):
        return None
    return Seen(pid, place, environ, words)


def _without_others(found: list[Seen]) -> list[Seen]:
    """Leave out workers, which have their rank's number, and launchers, which have another."""
    keys = {one.pid: one.key for one in found}
    launchers = {
        parent
        for one in found
        for parent in one.parents
        if parent in keys and keys[parent] != one.key
    }
    return [
        one
        for one in found
        if one.pid not in launchers
        and not any(keys.get(parent) == one.key for parent in one.parents)
    ]


# Looking at them


def look_at(ranks: list[Seen]) -> None:
    """Look at all of them, three times."""
    for one in ranks:
        one.open()
    began = time.monotonic()
    for at in range(LOOKS):
        time.sleep(max(0.0, began + at * INTERVAL_S - time.monotonic()))
        table = _connections()
        spies = {one.pid: _start_py_spy(one) for one in ranks if one.is_for_py_spy}
        for one in ranks:
            threads = _py_spy_says(one, spies[one.pid]) if one.pid in spies else _own_reading(one)
            one.looks.append({"threads": threads, **_process(one.pid, table, threads)})


def _own_reading(one: Seen) -> list[dict[str, Any]]:
    """Return its threads; in a process that runs, a look may go wrong."""
    if one.reader is None:
        return []
    try:
        one.problem, threads = "", one.reader.threads()
    except Unreadable as error:
        one.problem, threads = str(error), []
    return threads


def _start_py_spy(one: Seen) -> subprocess.Popen[bytes] | None:
    """Start it; where it is in nobody's PATH, the one beside the rank's own Python."""
    beside = os.path.dirname(one.words[0]) if one.words else ""  # noqa: PTH120
    program = shutil.which("py-spy") or shutil.which("py-spy", path=beside or None)
    if program is None or not _is_trusted(program):
        return None
    command = [program, "dump", "--json", "--nonblocking", "--locals", "--pid", str(one.pid)]
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except OSError:
        return None


def _is_trusted(program: str) -> bool:
    """Whether nobody but this user or root could have put it there."""
    about = os.stat(program)  # noqa: PTH116
    return about.st_uid in (0, os.geteuid()) and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _py_spy_says(one: Seen, spy: subprocess.Popen[bytes] | None) -> list[dict[str, Any]]:
    if spy is None:
        return []
    try:
        out, err = spy.communicate(timeout=PY_SPY_TIMEOUT_S)
        threads: list[dict[str, Any]] = json.loads(out) if spy.returncode == 0 else []
    except (subprocess.TimeoutExpired, ValueError) as error:
        spy.kill()
        spy.communicate()
        one.problem = f"py-spy: {error}"
        return []
    lines = err.decode("utf-8", "replace").splitlines()
    one.problem = "" if threads else f"py-spy: {lines[0] if lines else spy.returncode}"
    return threads


def _connections() -> dict[str, list[str]]:
    """Return both ends of each TCP connection by its inode, as the kernel prints them."""
    found: dict[str, list[str]] = {}
    for name in ("tcp", "tcp6"):
        try:
            rows = _text(f"/proc/self/net/{name}").splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            cells = row.split()
            if cells[3] == ESTABLISHED:
                found[cells[9]] = cells[1:3]
    return found


def _process(
    pid: int, table: dict[str, list[str]], threads: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return what the system shows of a process and its threads, nothing of one that has ended."""
    folder = f"/proc/{pid}"
    try:
        state, *numbers = _text(f"{folder}/stat").rpartition(")")[2].split()
        cpu = (int(numbers[10]) + int(numbers[11])) / os.sysconf("SC_CLK_TCK")
        sockets: dict[str, list[str]] = {}
        for each in os.listdir(f"{folder}/fd"):  # noqa: PTH208
            match = SOCKET.fullmatch(_link(f"{folder}/fd/{each}"))
            if match and match[1] in table:
                sockets[match[0]] = table[match[1]]
        switches = {
            tid: int(_status(f"{pid}/task/{tid}", "voluntary_ctxt_switches") or 0)
            for tid in os.listdir(f"{folder}/task")  # noqa: PTH208
        }
    except (OSError, ValueError, IndexError):
        return {"state": "", "at": time.monotonic()}
    tids = [each["os_thread_id"] for each in threads if each.get("os_thread_id")] or [pid]
    return {
        "state": "" if state in "ZXx" else state,
        "at": time.monotonic(),
        "cpu": cpu,
        "sockets": sockets,
        "switches": switches,
        "states": {tid: thread_state(tid, folder) for tid in tids},
    }


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""


def _sources(ranks: list[Seen]) -> dict[str, str]:
    """Return the texts of the files that the ranks' innermost calls are in."""
    found: dict[str, str] = {}
    left = MAX_SOURCES_BYTES
    for one in ranks:
        for thread in (each for look in one.looks for each in look["threads"]):
            path = thread["frames"][0]["filename"] if thread["frames"] else "<none>"
            if path not in found and not LIBRARY.search(path):
                where = "root" if path.startswith("/") else "cwd/"
                found[path] = _source(f"/proc/{one.pid}/{where}{path}", left)
                left -= len(found[path])
    return found


def _source(path: str, left: int) -> str:
    """Return a file's text; "" for what is no file, or too long."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return ""
            text = file.read(MAX_SOURCE_BYTES + 1)
    except (OSError, ValueError):
        return ""
    return text.decode("utf-8", "replace") if len(text) <= min(MAX_SOURCE_BYTES, left) else ""


def _is_adapter(pid: int) -> bool:
    """Whether a process is an adapter of debugpy's, which a rank that listens has started."""
    try:
        return ADAPTER in _text(f"/proc/{pid}/cmdline")
    except OSError:
        return False


def _told(one: Seen, above_adapters: list[int]) -> dict[str, Any]:
    return {
        "pid": one.pid,
        "rank": one.place.rank,
        "size": one.place.world_size,
        "launcher": one.place.launcher,
        "job": one.job,
        "program": " ".join(one.words[1:])[:200],
        "listens": one.pid in above_adapters,
        "problem": one.problem,
        "looks": one.looks,
    }


def main(only: dict[str, str], everybody: bool) -> None:
    """Look at the ranks of this machine, and print what is seen."""
    ranks, hidden = find(only, everybody)
    shown = sorted(ranks, key=lambda one: one.place.rank or 0)[:MAX_RANKS]
    look_at(shown)
    above = [parent for pid in _pids() if _is_adapter(pid) for parent in _parents(pid)]
    answer = {
        "ranks": [_told(one, above) for one in shown],
        "sources": _sources(shown),
        "more": len(ranks) - len(shown),
        "hidden": hidden,
        "adapters": bool(above),
    }
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()
