"""Code that runs inside ranks, also in those that have no dap-mux: a session sends its source.

Python 3.8 or later, the standard library and debugpy, and nothing else of dap-mux.
"""

from __future__ import annotations

import inspect
from types import ModuleType


def source_of(module: ModuleType) -> str:
    """The text of a module, to be executed in a rank."""
    return inspect.getsource(module)
