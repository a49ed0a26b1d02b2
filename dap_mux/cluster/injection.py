"""Injects debugpy into a running process with debugpy's own `--pid`, and waits until it listens.

The injector is never killed: a native debugger killed in the middle of a call ends the process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import anyio

from dap_mux import procfs
from dap_mux.cluster.native_debuggers import FORBIDDEN, cause_in, is_forbidden, working_debugger
from dap_mux.cluster.python_process import RunningPython
from dap_mux.errors import DapMuxError, NothingToConnect, Refused
from dap_mux.open_files import restore_limit
from dap_mux.private_files import startable
from dap_mux.python_command import debugpy_folder, module_command

INJECTION_TIMEOUT_S: Final = 60.0  # gdb reads the symbols of all loaded libraries
POLL_INTERVAL_S: Final = 0.05
REMOTE_EXEC_PYTHON: Final = (3, 14)
_EMPTY_PATH: Final = "/nonexistent"  # a PATH


async def debugger_for(processes: Iterable[RunningPython]) -> str:
    """Return a native debugger that works; "" if none is needed. Raises `DapMuxError`."""
    if all(process.version >= REMOTE_EXEC_PYTHON for process in processes):
        return ""
    return await working_debugger()


async def bring_debugpy(process: RunningPython, host: str, port: int, debugger: str) -> int:
    """Inject debugpy, preferably on `port`; return the actual port. Raises `DapMuxError`."""
    with tempfile.TemporaryFile() as log:
        injector = subprocess.Popen(  # noqa: ASYNC220  (starting does not wait)
            injector_command(process, host, port, debugger),
            env=injector_environment(process, os.environ),
            cwd="/",  # where -m finds nothing that somebody has left for us
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # a Ctrl-C at the terminal would reach the debugger too
            preexec_fn=restore_limit,  # noqa: PLW1509  (takes no lock)
        )
        try:
            with anyio.move_on_after(INJECTION_TIMEOUT_S):
                return await _listening(process, injector)
            raise DapMuxError(
                f"process {process.pid} did not accept debugpy within {INJECTION_TIMEOUT_S:g} s: "
                "perhaps its main thread is in native code; try again later"
            )
        except _InjectorFailed:
            log.seek(0)
            raise _failure(process, log.read().decode("utf-8", "replace")) from None
        finally:
            if injector.poll() is None:
                injector.returncode = 0  # otherwise `Popen` warns that it still runs


def injector_command(process: RunningPython, host: str, port: int, debugger: str) -> list[str]:
    """Return the command line. `sys.remote_exec` needs the same Python version on both sides.

    Raises Refused where that would be a program that others can have made.
    """
    python, module = sys.executable, "debugpy"
    if process.version < REMOTE_EXEC_PYTHON:
        module = "dap_mux.rank.inject" if debugger == "lldb" else module
    elif process.version != sys.version_info[:2]:
        python = str(_own_python(process.pid))
    return [
        python,
        *module_command(module),
        "--listen",
        f"{host}:{port}",
        "--pid",
        str(process.pid),
    ]


def injector_environment(process: RunningPython, environ: Mapping[str, str]) -> dict[str, str]:
    """Return our environment; where another Python runs the injector, it finds our debugpy.

    PATH is emptied where `sys.remote_exec` is used: if that fails, debugpy would try gdb, untested.
    """
    result = {**environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    result.pop("PYDEVD_ATTACH_PREFER_LLDB", None)
    if process.version >= REMOTE_EXEC_PYTHON:
        result["PATH"] = _EMPTY_PATH
        if folder := debugpy_folder():
            result["PYTHONPATH"] = str(Path(folder).parent)
    return result


def _own_python(pid: int) -> Path:
    path = procfs.executable(pid)
    program = startable(path)
    if program is None:
        raise Refused(
            f"process {pid} runs {path}, which dap-mux does not start: it, or a folder above it, "
            "belongs to another user or is writable by everybody. Run dap-mux as that user, or by "
            "a Python of the same version"
        )
    return program


class _InjectorFailed(Exception):
    pass


async def _listening(process: RunningPython, injector: subprocess.Popen[bytes]) -> int:
    """Return the port, once the injector has ended and debugpy listens."""
    while True:
        if not process.runs:
            raise NothingToConnect(
                f"process {process.pid} ended while debugpy was injected, which perhaps crashed "
                "it; start the program with `dap-mux run` instead"
            )
        code = injector.poll()
        if code:
            raise _InjectorFailed
        port = process.listening_port() if code == 0 else None
        if port is not None:
            return port
        await anyio.sleep(POLL_INTERVAL_S)


def _failure(process: RunningPython, said: str) -> DapMuxError:
    if is_forbidden(said):
        return Refused(f"process {process.pid}: {FORBIDDEN}")
    return DapMuxError(f"could not inject debugpy into process {process.pid}: {cause_in(said)}")
