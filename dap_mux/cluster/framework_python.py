"""The Python of an engine's job: the one that has this engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Final

from dap_mux.errors import UsageError
from dap_mux.tunnel.children import run_command

NAMES: Final = ("python", "python3")


async def python_with(module: str, wanted: Path | None = None) -> str:
    """Return the Python that imports `module`: `wanted`, that of VIRTUAL_ENV, one in PATH, or ours.

    Raises `UsageError` if there is none.
    """
    if wanted:
        if not await _has(str(wanted), module):
            raise UsageError(f"{wanted} has no {module}; give the job's Python by --python")
        return str(wanted)
    tried = []
    for python in dict.fromkeys(_candidates()):
        if await _has(python, module):
            return python
        tried.append(python)
    where = f" (tried {', '.join(tried)})" if tried else ""
    raise UsageError(f"no Python with {module} found{where}; give the job's Python by --python")


def _candidates() -> Iterator[str]:
    environment = os.environ.get("VIRTUAL_ENV")
    if environment:
        yield str(Path(environment) / "bin" / "python")
    for folder in os.get_exec_path():
        for name in NAMES:
            found = which(name, path=folder)
            if found:
                yield found
    yield sys.executable


async def _has(python: str, module: str) -> bool:
    """Whether this Python finds the module; it is not imported, as that may take seconds."""
    code = (  # not found in the working directory
        "import importlib.util as u, sys; del sys.path[0]; "
        f"sys.exit(u.find_spec({module!r}) is None)"
    )
    return (await run_command([python, "-c", code])).code == 0
