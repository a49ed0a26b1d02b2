"""Code that runs inside ranks, also in those that have no dap-mux: a session sends its source.

Python 3.8 or later, the standard library and debugpy, and nothing else of dap-mux. No module
imports another: each is executed on its own.
"""

from __future__ import annotations

import pkgutil


def source_of(module: str) -> str:
    """Return the source of a module of this package, to be executed in a rank."""
    data = pkgutil.get_data(__name__, f"{module}.py")
    assert data is not None
    return data.decode("utf-8")
