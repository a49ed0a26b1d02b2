"""The command line: arguments in, an exit code out.

`commands` is the table of commands and their arguments; `entry` parses a command line, runs the
command and turns errors into a message and an exit code. `join` is how one-shot commands and
consoles join a session.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line (by default the process's own) and return its exit code."""
    with without_collections(), without_typing_extensions():
        from dap_mux.frontends.cli import entry
    return entry.main(arguments)


# Start fast: `dap-mux adapter` must start in the time an editor allows. So a command's own module
# (`session_commands`, `console`, `listings`, ...) is imported when it runs, and what is imported on
# the way does not become garbage.


@contextmanager
def without_collections() -> Iterator[None]:
    """Import in here: no garbage is looked for, which saves a tenth of the time.

    Later collections, of which a session of many ranks has many, pass over all of it too.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()


@contextmanager
def without_typing_extensions() -> Iterator[None]:
    """Import in here: msgspec takes from `typing` what it would take from typing_extensions.

    It is the same from Python 3.11 on, and the other takes 5 ms to import.
    """
    name = "typing_extensions"
    skipped = sys.version_info >= (3, 11) and name not in sys.modules
    if skipped:
        sys.modules[name] = None  # type: ignore[assignment]  # Python's own mark of no such module
    try:
        yield
    finally:
        if skipped:
            sys.modules.pop(name, None)
