"""Observe this machine: its Pythons, its launch configurations, and what commands find."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dap_mux.system import procfs
from dap_mux.system.procfs import TcpSocket
from dap_mux.system.programs import is_starter, runs_module
from dap_mux.system.user_files import parse_json, read_regular

# Finds out whether a job's Python has debugpy, and which version.

START_TIMEOUT_S: Final = 30.0  # `kubectl exec` is slow
_PROGRAM: Final = (
    "import sys; del sys.path[0]; "  # nothing of the folder that we are in is run
    "import debugpy; print('debugpy', debugpy.__version__, sys.version.split()[0])"
)
_MISSING: Final = "No module named"


@dataclass(frozen=True)
class Python:
    """`command` starts it, here or on another machine. `version`: debugpy's, "" for none.

    `missing`: it runs without debugpy; `problem`: why it does not run.
    """

    command: str
    version: str = ""
    missing: bool = False
    problem: str = ""


async def inspect_python(command: str) -> Python:
    """Let it import debugpy."""
    words = shlex.split(command)
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            "-c",
            _PROGRAM,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        return Python(command, problem=f"{words[0]}: {error.strerror or error}")
    try:
        out, err = await asyncio.wait_for(process.communicate(), START_TIMEOUT_S)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        return Python(command, problem=f"no response within {START_TIMEOUT_S:g} s")
    told = out.decode("utf-8", "replace").split()
    if process.returncode == 0 and told[:1] == ["debugpy"]:
        return Python(command, version=told[1])
    said = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return Python(command, missing=_MISSING in said, problem=said)


# The folder's `.vscode/launch.json`: configurations that lead to a session or to ranks.

LAUNCH: Final = Path(".vscode/launch.json")
# A string, or an extension of JSON: a comment, or a comma before a closing bracket.
_PARTS: Final = re.compile(
    r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|,(?=\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*[\]}])', re.DOTALL
)


@dataclass(frozen=True)
class Configuration:
    """One configuration, of our type or for attaching with debugpy."""

    name: str
    values: dict[str, Any]

    @property
    def where(self) -> str:
        """Its name in messages."""
        return f'{LAUNCH}, "{self.name}"'

    @property
    def address(self) -> tuple[str, int] | None:
        """The address that it connects to; None if it launches, or contains a variable."""
        connect = self.values.get("connect")
        place = connect if isinstance(connect, dict) else self.values
        host, port = place.get("host", "127.0.0.1"), place.get("port")
        if isinstance(port, str) and re.fullmatch(r"[0-9]{1,5}", port):
            port = int(port)
        if self.values.get("request") != "attach" or not isinstance(port, int):
            return None
        return (host, port) if isinstance(host, str) and "$" not in host else None


def read_launch_json(folder: Path) -> tuple[list[Configuration], str]:
    """Return a folder's configurations, and why they cannot be read ("" if they can)."""
    try:
        text = read_regular(folder / LAUNCH)
    except FileNotFoundError:
        return [], ""
    except (OSError, UnicodeDecodeError) as error:
        return [], str(error)
    try:
        found = parse_json(plain(text))
    except ValueError as error:
        return [], str(error)
    listed = found.get("configurations") if isinstance(found, dict) else None
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [Configuration(str(one.get("name")), one) for one in entries if _is_ours(one)], ""


def _is_ours(values: dict[str, Any]) -> bool:
    kind = values.get("type")
    return kind == "dap-mux" or (
        kind in ("debugpy", "python") and values.get("request") == "attach"
    )


def plain(text: str) -> str:
    """Convert JSON with comments to JSON, keeping line numbers."""
    return _PARTS.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text)


OUR_ADAPTER: Final = "--server-access-token"  # among its arguments where a rank of ours started it
_HALTED_STATES: Final = "TtZ"
FORWARDERS: Final = frozenset(
    {"docker-proxy", "kubectl", "oc", "rootlessport", "slirp4netns", "socat", "ssh", "sshd"}
)


@dataclass(frozen=True)
class Process:
    """A process on this machine; `state`: the letter of proc(5)."""

    pid: int
    words: tuple[str, ...] = ()
    state: str = ""
    debugs: bool = False  # pydevd is loaded in it

    @property
    def name(self) -> str:
        """The name of the program, or of the script or module that a Python runs."""
        words = self.words[1:] if self.is_python else self.words
        if words and (words[0] == "-m" or is_starter(words[0])):
            words = words[1:]
        named = words[0] if words and not words[0].startswith("-") else (*self.words, "?")[0]
        return Path(named).name

    @property
    def is_adapter(self) -> bool:
        """Whether it is debugpy's adapter."""
        debugpys_own = any(word.rstrip("/").endswith("debugpy/adapter") for word in self.words)
        return debugpys_own or OUR_ADAPTER in self.words

    @property
    def is_rank(self) -> bool:
        """Whether it runs under our agent, and so listens by itself."""
        return runs_module(self.words, "dap_mux.rank")

    @property
    def is_python(self) -> bool:
        """Whether it is run by a Python."""
        return bool(self.words) and Path(self.words[0]).name.startswith("python")

    @property
    def folder(self) -> Path | None:
        """Its working directory; None if not accessible."""
        return procfs.working_folder(self.pid)

    @property
    def forwards(self) -> bool:
        """Whether it is a known port forwarder."""
        return self.name in FORWARDERS

    @property
    def is_ours(self) -> bool:
        """Whether it is a dap-mux."""
        return self.name == "dap-mux" or runs_module(self.words, "dap_mux")

    @property
    def is_halted(self) -> bool:
        """Whether it cannot respond: suspended, or a zombie."""
        return self.state[:1] in _HALTED_STATES if self.state else False

    def __str__(self) -> str:
        return f"{self.name} (pid {self.pid})"


@dataclass(frozen=True)
class Machine:
    """A snapshot of this machine's sockets. `known`: they are accessible."""

    sockets: tuple[TcpSocket, ...] = ()
    known: bool = True
    _holders: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls) -> Machine:
        """Take a snapshot."""
        try:
            sockets = tuple(procfs.tcp_sockets())
        except OSError:
            return cls(known=False)
        holders = {inode: pid for pid in procfs.pids() for inode in procfs.socket_inodes(pid)}
        return cls(sockets, _holders=holders)

    def listener(self, host: str, port: int) -> TcpSocket | None:
        """Return the socket that a connection to a loopback address would reach."""
        listening = (
            each for each in self.sockets if (each.state, each.port) == (procfs.LISTEN, port)
        )
        return next((each for each in listening if _covers(each.host, host)), None)

    def holder(self, socket: TcpSocket) -> Process | None:
        """Return the process that holds a socket; None if not accessible."""
        pid = self._holders.get(socket.inode)
        return process(pid) if pid is not None else None

    def clients(self, listener: TcpSocket) -> list[Process | None]:
        """Return the processes connected to a port; None for remote or inaccessible ones."""
        there = self._accepted(listener, procfs.ESTABLISHED)
        ends = {(each.port, each.remote_port): each for each in self.sockets}
        return [
            self.holder(other) if other else None
            for other in (ends.get((each.remote_port, each.port)) for each in there)
        ]

    def left(self, listener: TcpSocket) -> int:
        """Count the connections that the peer has closed without the listener noticing."""
        return len(self._accepted(listener, procfs.CLOSE_WAIT))

    def _accepted(self, listener: TcpSocket, state: int) -> list[TcpSocket]:
        """Return those of the listener, and those that a rank has handed to its adapter."""
        mine = self._holders.get(listener.inode)
        there = [each for each in self.sockets if (each.state, each.port) == (state, listener.port)]
        return [
            each
            for each in there
            if self._holders.get(each.inode) == mine
            or ((holder := self.holder(each)) is not None and holder.is_adapter)
        ]

    def debugpy_ports(self) -> Iterator[tuple[int, Process]]:
        """Yield each port on which a debugpy waits for a debugger.

        An adapter's port for its debuggee is connected, and so left out. A rank of ours that
        listens on more than one port does not show which is its debugger's.
        """
        listening = [each for each in self.sockets if each.state == procfs.LISTEN]
        ports = Counter(self._holders.get(each.inode) for each in listening)
        for each in listening:
            holder = self.holder(each)
            alone = holder and holder.is_rank and ports[holder.pid] == 1
            if holder and (holder.is_adapter or alone) and not self.clients(each):
                yield each.port, holder


def process(pid: int) -> Process | None:
    """Inspect a process; None where there is none."""
    arguments, found = procfs.command_line(pid), procfs.stat(pid)
    if arguments is None or found is None:
        return None
    return Process(pid, arguments, found.state, _has_pydevd(pid))


def _has_pydevd(pid: int) -> bool:
    """Whether pydevd's compiled part is mapped; a pydevd without one cannot be detected."""
    with suppress(OSError):
        return b"/pydevd_" in procfs.mappings(pid)
    return False


def _covers(bound: str, host: str) -> bool:
    """Whether a socket bound to one address accepts connections to another."""
    if bound in ("0.0.0.0", "::"):  # noqa: S104 - what somebody else has bound
        return True
    wanted = ("127.0.0.1", "::1") if host == "localhost" else (host.strip("[]"),)
    return bound in wanted


def named(processes: Iterable[Process | None]) -> str:
    """Return the processes for a message."""
    return ", ".join(str(each) if each else "an inaccessible process" for each in processes)
