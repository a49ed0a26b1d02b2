"""In a worker of Ray that runs in a copy of the driver's `working_dir`: both are the same code.

Modules are imported from the copy, while functions of the driver's script come by value and bear
the name of the original. A breakpoint is to hit in either, so debugpy is told that the originals
are their copies; the session maps the copies back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ORIGINAL = "DAP_MUX_WORKING_FOLDER"
MAX_FILES = 20_000


def variables(working_folder: object) -> dict[str, str]:
    """Return what a driver tells its workers of its `working_dir`, which may be no folder here."""
    folder = os.path.realpath(working_folder) if isinstance(working_folder, str) else ""
    return {ORIGINAL: folder} if os.path.isdir(folder) else {}  # noqa: PTH112  (may be a URI)


def traits() -> dict[str, object]:
    """Return the fields of this rank's record that map its files, if it runs in such a copy."""
    original, here = os.environ.get(ORIGINAL), os.path.realpath(Path.cwd())
    return {"localRoot": original, "remoteRoot": here} if original and original != here else {}


def take_originals_for_copies() -> None:
    """Let debugpy, which is loaded, take the originals for their copies."""
    if not traits():
        return
    original, here = Path(os.environ[ORIGINAL]), Path.cwd()
    files: Any = import_module("pydevd_file_utils")
    known = files.NORM_PATHS_AND_BASE_CONTAINER
    for copy in _programs(here):
        name = str(original / copy.relative_to(here))
        known[name] = files.get_abs_path_real_path_and_base_from_file(str(copy))


def _programs(folder: Path) -> Iterator[Path]:
    """Yield the Python files below a folder, not too many."""
    for _, path in zip(range(MAX_FILES), folder.rglob("*.py"), strict=False):
        yield path
