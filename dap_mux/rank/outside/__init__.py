"""The program that a session sends to a machine to look at its ranks from outside.

Python 3.8 or later, the standard library, and the modules named here: the machine needs nothing
else, and keeps nothing.
"""

from __future__ import annotations

import pkgutil

_PACKAGE = "dap_mux.rank"
_MODULES = (
    "environ",
    "injected.evidence.thread_states",
    "outside.python_memory",
    "outside.host_look",
)
"""In the order in which they import each other."""
_LOADER = """\
import sys, types
for name, text in {sources!r}:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.main({only!r}, {everybody!r})
"""


def program(only: dict[str, str], *, everybody: bool) -> bytes:
    """Return a program that runs `host_look.main` with these arguments."""
    sources = []
    for name in _MODULES:
        text = pkgutil.get_data(_PACKAGE, f"{name.replace('.', '/')}.py")
        assert text is not None
        sources.append((f"{_PACKAGE}.{name}", text.decode("utf-8")))
    return _LOADER.format(sources=sources, only=only, everybody=everybody).encode()
