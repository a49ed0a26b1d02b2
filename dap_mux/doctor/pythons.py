"""Finds out whether a job's Python has debugpy, and which version."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass
from typing import Final

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


async def inspect(command: str) -> Python:
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
