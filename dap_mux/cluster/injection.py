"""Bring debugpy into a process that runs, by debugpy's own `--pid`, and see it listen.

The injector is never killed: gdb in the middle of a call takes the process with it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import anyio

from dap_mux.cluster.processes import RunningPython, refuse_to_trace
from dap_mux.errors import DapMuxError, NothingToConnect, Refused
from dap_mux.printable import one_line

LIMIT: Final = 60.0  # s; gdb reads the symbols of every library that the process has loaded
LOOK_AGAIN: Final = 0.05  # s
REMOTE_EXEC: Final = (3, 14)
_FORBIDDEN: Final = re.compile(r"ptrace: Operation not permitted|PermissionError", re.IGNORECASE)
_TELLING: Final = re.compile(
    r"^\S*(?:Error|Exception)\b.*|.*ptrace: .*|^Could not .*", re.MULTILINE
)


def refuse_without_a_way(process: RunningPython) -> None:
    """Say what stands in the way, before anything is touched. Raises `DapMuxError`."""
    if process.version < REMOTE_EXEC and shutil.which("gdb") is None:
        raise DapMuxError(
            f"process {process.pid}: gdb is not on this machine, and a running Python "
            f"{process.version[0]}.{process.version[1]} takes it; install gdb, or start the "
            "program with `dap-mux run` (Python 3.14 and later do without gdb)"
        )
    refuse_to_trace(process)


async def bring_debugpy(process: RunningPython, host: str, port: int) -> int:
    """Let it listen on `port`; the port that it does listen on. Raises `DapMuxError`."""
    with tempfile.TemporaryFile() as log:
        injector = subprocess.Popen(  # noqa: ASYNC220  (starting does not wait)
            injector_command(process, host, port),
            env=injector_environment(process, os.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # a Ctrl-C at the terminal would reach gdb too
        )
        try:
            with anyio.move_on_after(LIMIT):
                return await _listening(process, injector)
            raise DapMuxError(
                f"process {process.pid} did not let debugpy in within {LIMIT:g} s: perhaps its "
                "main thread does not get back to Python; once it does, try again"
            )
        except _InjectorFailed:
            log.seek(0)
            raise _failure(process, log.read().decode("utf-8", "replace")) from None
        finally:
            if injector.poll() is None:
                injector.returncode = 0  # or `Popen` complains that it was not waited for


def injector_command(process: RunningPython, host: str, port: int) -> list[str]:
    """What brings debugpy in. `sys.remote_exec` wants the very same Python on both sides."""
    same = process.version == sys.version_info[:2]
    python = sys.executable
    if process.version >= REMOTE_EXEC and not same:
        python = str(Path(f"/proc/{process.pid}/exe").readlink())
    address = f"{host}:{port}"
    return [python, "-m", "debugpy", "--listen", address, "--pid", str(process.pid)]


def injector_environment(process: RunningPython, environ: Mapping[str, str]) -> dict[str, str]:
    """Ours; the process's own Python is told where our debugpy is."""
    result = {**environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    spec = find_spec("debugpy")
    if process.version >= REMOTE_EXEC and spec is not None and spec.origin is not None:
        result["PYTHONPATH"] = str(Path(spec.origin).parent.parent)
    return result


class _InjectorFailed(Exception):
    pass


async def _listening(process: RunningPython, injector: subprocess.Popen[bytes]) -> int:
    """The port, once the injector has ended and debugpy listens."""
    while True:
        if not process.runs:
            raise NothingToConnect(
                f"process {process.pid} ended while debugpy was brought in: if it crashed, gdb has "
                "met it in the middle of something; start the program with `dap-mux run` instead"
            )
        code = injector.poll()
        if code:
            raise _InjectorFailed
        port = process.listening_port() if code == 0 else None
        if port is not None:
            return port
        await anyio.sleep(LOOK_AGAIN)


def _failure(process: RunningPython, said: str) -> DapMuxError:
    if _FORBIDDEN.search(said):
        return Refused(
            f"process {process.pid}: this system forbids attaching to a running process; in a "
            "container the capability SYS_PTRACE allows it"
        )
    telling = _TELLING.findall(said) or said.strip().splitlines() or ["it does not say why"]
    return DapMuxError(
        f"debugpy could not be brought into process {process.pid}: {one_line(telling[-1].strip())}"
    )
