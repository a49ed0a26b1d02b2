"""gdb and lldb, one of which injects debugpy into a running process: finds one that works.

On some processors gdb cannot write registers ("Couldn't write extended state status"). Its calls
then fail, and a process that was asleep in the kernel wakes with errno 514 and dies. So a debugger
is used on a user's process only after a call in a child of ours, which must survive it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import anyio
from anyio.abc import Process

from dap_mux.errors import DapMuxError, Refused
from dap_mux.injected import source_of
from dap_mux.printable import one_line
from dap_mux.rank.inject import debugger_environment, lldb_command

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
