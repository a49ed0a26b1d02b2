"""Code that runs inside ranks, also in those that have no dap-mux: a session sends its source.

Python 3.8 or later, the standard library and debugpy, and nothing else of dap-mux. No module
imports another: each is executed on its own. A folder is a bundle, which a rank keeps once it has
it: its `__init__` is executed first, and executes the others. A new module is a new file, and
nothing else.
"""

from __future__ import annotations

import pkgutil
from importlib.resources import files


def source_of(module: str) -> str:
    """Return the source of a module of this package, as `stacks` or `attach/tracing` names it."""
    data = pkgutil.get_data(__name__, f"{module}.py")
    assert data is not None
    return data.decode("utf-8")


def folders() -> dict[str, dict[str, str]]:
    """Return the sources by folder and name; those that are no bundle's are in the folder "".

    A bundle's `__init__` has the bundle's name.
    """
    found: dict[str, dict[str, str]] = {"": {}}
    for entry in files(__name__).iterdir():
        if entry.is_dir() and entry.joinpath("__init__.py").is_file():
            names = [each.name[:-3] for each in entry.iterdir() if each.name.endswith(".py")]
            sources = {name: source_of(f"{entry.name}/{name}") for name in sorted(names)}
            found[entry.name] = {entry.name: sources.pop("__init__"), **sources}
        elif entry.name.endswith(".py") and entry.name != "__init__.py":
            found[""][entry.name[:-3]] = source_of(entry.name[:-3])
    return found
