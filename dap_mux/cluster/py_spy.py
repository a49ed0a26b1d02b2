"""py-spy, which reads the Python stacks of a process from outside and does not pause it.

It is found beside our own Python (the extra `py-spy`), in PATH, and beside the Python of a process,
if nobody else could have put it there: see `private_files.startable`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import anyio

from dap_mux import procfs
from dap_mux.errors import DapMuxError
from dap_mux.printable import one_line
from dap_mux.private_files import startable

NAME: Final = "py-spy"
INSTALL: Final = "pip install py-spy"
DUMP_TIMEOUT_S: Final = 4.0  # s; it takes a tenth of one
MAX_DUMP_BYTES: Final = 8 << 20
NO_RIGHT: Final = (
    "this system does not allow reading it: run dap-mux as root, or in a container with the "
    "capability SYS_PTRACE"
)


class NoDump(DapMuxError):
    """Why there is no dump of a process."""


def find_py_spy(pid: int) -> str | None:
    """Return py-spy's path; a process may have one in its own environment."""
    for folder in (str(Path(sys.executable).parent), None):
        if found := shutil.which(NAME, path=folder):
            return found
    beside = _environment_of(pid)
    found = shutil.which(NAME, path=str(beside)) if beside is not None else None
    program = startable(Path(found)) if found else None
    return str(program) if program else None


async def dump(py_spy: str, pid: int) -> bytes:
    """Return what it prints of a process's threads. Raises NoDump."""
    command = [py_spy, "dump", "--json", "--nonblocking", "--locals", "--pid", str(pid)]
    try:
        with anyio.fail_after(DUMP_TIMEOUT_S):
            done = await anyio.run_process(
                command, stdin=subprocess.DEVNULL, check=False, start_new_session=True
            )
    except TimeoutError:
        raise NoDump(f"py-spy did not answer within {DUMP_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise NoDump(f"cannot start {py_spy}: {error.strerror}") from None
    if done.returncode:
        raise NoDump(_reason(done.stderr.decode("utf-8", "replace")))
    if len(done.stdout) > MAX_DUMP_BYTES:
        raise NoDump(f"py-spy printed {len(done.stdout) >> 20} MB")
    return done.stdout


def _reason(said: str) -> str:
    if "ermission" in said or "not permitted" in said:
        return NO_RIGHT
    lines = [line.removeprefix("Error: ") for line in said.splitlines() if line.strip()]
    return one_line(f"py-spy: {lines[0]}" if lines else "py-spy failed with no error message")


def _environment_of(pid: int) -> Path | None:
    """Return where the scripts of a process's environment are, by its first argument."""
    words = procfs.command_line(pid) or ()
    path = Path(words[0]) if words else Path()
    return path.parent if path.is_absolute() else None
