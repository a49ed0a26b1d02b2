"""A Python that the job is to run on: has it a debugpy, and which?"""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass
from typing import Final

START_TIMEOUT_S: Final = 30.0  # s; `kubectl exec` takes its time
_PROGRAM: Final = (
    "import debugpy, sys; print('debugpy', debugpy.__version__, sys.version.split()[0])"
)
_MISSING: Final = "No module named"


@dataclass(frozen=True)
class Python:
    """`command` starts it, here or by a tool elsewhere. `version`: debugpy's, "" for none.

    `missing`: it runs, and has no debugpy; `problem`: why it does not run.
    """

    command: str
    version: str = ""
    missing: bool = False
    problem: str = ""


async def inspect(command: str) -> Python:
    """Have it import debugpy."""
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
        return Python(command, problem=f"no answer within {START_TIMEOUT_S:g} s")
    told = out.decode("utf-8", "replace").split()
    if process.returncode == 0 and told[:1] == ["debugpy"]:
        return Python(command, version=told[1])
    said = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return Python(command, missing=_MISSING in said, problem=said)
