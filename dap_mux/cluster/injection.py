"""Injects debugpy into a running process with debugpy's own `--pid`, and waits until it listens."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process

from dap_mux.cluster.python_process import RunningPython
from dap_mux.pure.errors import DapMuxError, NothingToConnect, Refused
from dap_mux.pure.printable import one_line
from dap_mux.rank.inject import debugger_environment, lldb_command
from dap_mux.rank.injected import source_of
from dap_mux.system import procfs
from dap_mux.system.programs import debugpy_folder, module_command, restore_limit
from dap_mux.system.user_files import startable

DEBUGGERS: Final = ("gdb", "lldb")
TRIAL_TIMEOUT_S: Final = 60.0
FORBIDDEN: Final = (
    "this system forbids attaching to a running process; in a container the capability SYS_PTRACE "
    "is needed"
)
_NOT_PERMITTED: Final = re.compile(r"Operation not permitted|PermissionError", re.IGNORECASE)
_DEBUGPY_LOG: Final = re.compile(r"^(?:[EWDI]\+\d|Traceback \()", re.MULTILINE)
_CAUSE: Final = re.compile(r"(?:Couldn't|Could not|Cannot|No symbol|error:|ptrace:) ?")
_ROUTINE: Final = re.compile(r"\[Inferior |Running: |warning: |\(lldb\) ")
_EXCEPTION: Final = re.compile(r"^\s*(?!subprocess\.)[\w.]+(?:Error|Exception)\b.*", re.MULTILINE)


class NoWorkingDebugger(DapMuxError):
    """Neither gdb nor lldb works on this machine."""


class _TrialFailed(Exception):
    """Why this debugger must not be used on a process."""


async def working_debugger() -> str:
    """Return `gdb`, or `lldb` if gdb fails. Raises `NoWorkingDebugger` or `Refused`."""
    missing: list[str] = []
    failed: dict[str, str] = {}
    for name in DEBUGGERS:
        if shutil.which(name) is None:
            missing.append(name)
            continue
        try:
            await _try_on_a_child(name)
        except _TrialFailed as error:
            failed[name] = str(error)
        else:
            return name
    if any(is_forbidden(why) for why in failed.values()):
        raise Refused(FORBIDDEN)
    raise NoWorkingDebugger(_no_working_debugger(missing, failed))


def cause_in(said: str) -> str:
    """Return the line of an injector's output that says what went wrong."""
    account = _DEBUGPY_LOG.search(said)
    own = [*_lines(said[: account.start()] if account else said)]
    causes = [line for line in own if _CAUSE.match(line)]
    exceptions = _EXCEPTION.findall(said)
    telling = causes[:1] or exceptions[-1:] or own[-1:] or ["no error message"]
    return one_line(telling[0].strip())


def is_forbidden(said: str) -> bool:
    """Whether the kernel did not allow it to attach."""
    return bool(_NOT_PERMITTED.search(said))


def _lines(said: str) -> Iterator[str]:
    for line in said.splitlines():
        if line.strip() and not _ROUTINE.match(line):
            yield line


def _no_working_debugger(missing: list[str], failed: dict[str, str]) -> str:
    if not failed:
        why = f"neither {' nor '.join(missing)} is installed"
    else:
        told = [f"{name} does not work on this machine ({cause})" for name, cause in failed.items()]
        told += [f"{name} is not installed" for name in missing]
        why = f"{' and '.join(told)}, so using it could kill the process"
    install = f"install {' or '.join(missing)}, or " if missing else ""
    return (
        f"{why}; {install}start the program with `dap-mux run` (a running Python older than 3.14 "
        "needs a native debugger)"
    )


# On some processors gdb cannot write registers ("Couldn't write extended state status"). Its calls
# then fail, and a process that was asleep in the kernel wakes with errno 514 and dies. So a
# debugger is used on a user's process only after a call in a child of ours, which must survive it.
async def _try_on_a_child(name: str) -> None:
    """Let it call a function in a sleeping process. Raises `_TrialFailed`."""
    # -I: our environment must not make this Python a rank.
    command = [sys.executable, "-I", "-c", source_of("sleeper")]
    async with await anyio.open_process(command, stderr=subprocess.DEVNULL) as child:
        try:
            with anyio.fail_after(TRIAL_TIMEOUT_S):
                await _call_in(child, name)
        except TimeoutError:
            raise _TrialFailed(f"no response within {TRIAL_TIMEOUT_S:g} s") from None
        finally:
            # Not `child.kill()`: that reaps one that has just ended before asyncio does, which then
            # prints "Unknown child process pid 7, will report returncode 255".
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)


async def _call_in(child: Process, name: str) -> None:
    assert child.stdin
    assert child.stdout
    await child.stdout.receive()
    done = await anyio.run_process(
        _trial_command(name, child.pid),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        check=False,
        env=debugger_environment(),
        start_new_session=True,
    )
    said = done.stdout.decode("utf-8", "replace")
    if re.search(rf"= {child.pid}$", said, re.MULTILINE) is None:
        raise _TrialFailed(cause_in(said))
    await child.stdin.aclose()
    code = await child.wait()
    if code:
        raise _TrialFailed(f"a sleeping process did not survive it, exit code {code}")


def _trial_command(name: str, pid: int) -> list[str]:
    call = "(int)getpid()"
    if name == "lldb":
        return lldb_command(pid, [call])
    return ["gdb", "--nw", "--nh", "--nx", "--batch", "--pid", str(pid), "-ex", f"call {call}"]


# The injector is never killed: a native debugger killed in the middle of a call ends the process.
INJECTION_TIMEOUT_S: Final = 60.0  # gdb reads the symbols of all loaded libraries
POLL_INTERVAL_S: Final = 0.05
REMOTE_EXEC_PYTHON: Final = (3, 14)
_EMPTY_PATH: Final = "/nonexistent"  # a PATH


async def debugger_for(processes: Iterable[RunningPython]) -> str:
    """Return a native debugger that works; "" if none is needed. Raises `DapMuxError`."""
    if all(process.version >= REMOTE_EXEC_PYTHON for process in processes):
        return ""
    return await working_debugger()


async def bring_debugpy(process: RunningPython, host: str, debugger: str) -> int:
    """Inject debugpy; return the port that it listens on. Raises `DapMuxError`."""
    with tempfile.TemporaryFile() as log:
        injector = subprocess.Popen(  # noqa: ASYNC220  (starting does not wait)
            injector_command(process, host, debugger),
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


def injector_command(process: RunningPython, host: str, debugger: str) -> list[str]:
    """Return the command line. `sys.remote_exec` needs the same Python version on both sides.

    debugpy takes any port. A native debugger needs seconds before debugpy listens: a port that was
    free at first may be another session's by then, and nobody but the program would hear of it.

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
        f"{host}:0",
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
