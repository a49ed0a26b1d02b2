"""Code that runs inside ranks, also in those that have no dap-mux: a session sends its source."""

from __future__ import annotations

import pkgutil
from pathlib import Path


def source_of(module: str) -> str:
    """Return the source of a module of this package, as `stacks` or `attach/tracing` names it."""
    data = pkgutil.get_data(__name__, f"{module}.py")
    assert data is not None
    return data.decode("utf-8")


# Python 3.8 or later, the standard library and debugpy, and nothing else of dap-mux. No module
# imports another: each is executed on its own. A folder is a bundle, which a rank keeps once it has
# it: its `__init__` is executed first, and executes the others. A new module is a new file, and
# nothing else.
def folders() -> dict[str, dict[str, str]]:
    """Return the sources by folder and name; those that are no bundle's are in the folder "".

    A bundle's `__init__` has the bundle's name.
    """
    here = Path(__file__).parent
    found = {"": {path.stem: source_of(path.stem) for path in _modules(here)}}
    for entry in here.glob("*/__init__.py"):
        name = entry.parent.name
        others = {path.stem: source_of(f"{name}/{path.stem}") for path in _modules(entry.parent)}
        found[name] = {name: source_of(f"{name}/__init__"), **others}
    return found


def _modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
