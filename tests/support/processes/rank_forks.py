"""Ranks forked from a process that has imported debugpy already, for tests.

`python -m debugpy` spends 0.15 s of CPU time on imports before its program begins, and twice 0.2 s
on a description of the environment for its log, whether it keeps one or not; the same for each of
some hundred ranks. One server per process of pytest imports once and forks; what a fork then does
is debugpy's own `main`, without that description, and with an adapter of its own. All that tells it
from a rank that a user started is `/proc/PID/cmdline`, which lacks the arguments, and `environ`,
the server's.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_SERVER: Final = Path(__file__).with_name("fork_server")
_READ_AT_START: Final = ("PYTHON", "PYDEVD", "DEBUGPY_LOG", "IDE_", "LC_", "LANG", "LD_")


class Forked:
    """A forked process, with what tests use of `asyncio.subprocess.Process`."""

    def __init__(self, pid: int, ended: int) -> None:
        self.pid: Final = pid
        self._ended: int | None = ended
        self._code: int | None = None

    @property
    def returncode(self) -> int | None:
        """None until it has ended; then its exit code, -n for signal n."""
        if self._ended is not None:
            with suppress(BlockingIOError):
                text = os.read(self._ended, 16)
                os.close(self._ended)
                self._ended, self._code = None, int(text or b"-9")  # no code: the server is gone
        return self._code

    async def wait(self) -> int:
        """Wait for its end; return the exit code."""
        loop = asyncio.get_running_loop()
        while (code := self.returncode) is None:
            assert self._ended is not None
            readable = asyncio.Event()
            loop.add_reader(self._ended, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(self._ended)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class _Server:
    """The process that forks, and our end of its socket."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.starts_as = _starts_as(variables)
        self._ours, theirs = socket.socketpair()
        path = os.pathsep.join(filter(None, [str(_SERVER), variables.get("PYTHONPATH")]))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "debugpy"],
                env={**variables, "PYTHONPATH": path, "FORK_SERVER_SOCKET": str(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._close)

    def fork(self, request: Mapping[str, Any], log: int) -> Forked:
        """Fork a process that runs debugpy with `argv`; its output goes to `log`."""
        ended, told = os.pipe()
        os.set_blocking(ended, False)
        socket.send_fds(self._ours, [json.dumps(request).encode() + b"\n"], [log, told])
        os.close(told)
        answer = self._ours.recv(16)
        assert answer, "the server that forks ranks has ended"
        return Forked(int(answer), ended)

    def _close(self) -> None:
        self._ours.close()
        self._process.wait()


_servers: list[_Server] = []


def can_fork(python: Sequence[str], variables: Mapping[str, str]) -> bool:
    """True for our own Python, in the server's network, with what Python and debugpy begin with."""
    if list(python) != [sys.executable] or sys.platform != "linux":
        return False
    if not _servers:
        _servers.append(_Server(variables))
    return _starts_as(variables) == _servers[0].starts_as


def fork(
    argv: Sequence[str], variables: Mapping[str, str], log: Path, folder: Path | None
) -> Forked:
    """Run `python -m debugpy ARGV...` in a fork; `can_fork` has said that it is possible."""
    request = {"argv": list(argv), "env": dict(variables), "folder": str(folder or Path.cwd())}
    with log.open("wb") as out:
        return _servers[0].fork(request, out.fileno())


def _starts_as(variables: Mapping[str, str]) -> dict[str, str]:
    """What a process has from its start on; a test may live in a network of its own."""
    network = str(Path("/proc/thread-self/ns/net").readlink())
    read = {key: value for key, value in variables.items() if key.startswith(_READ_AT_START)}
    return {**read, "": network}
