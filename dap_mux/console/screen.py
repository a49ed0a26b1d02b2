"""Where a console writes: a terminal with colour and drawn tables, or plain lines.

All text that is shown passes through here, and control characters in it are escaped: the output
of ranks must never control the user's terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol

from dap_mux.console.tables import Table, grid
from dap_mux.printable import printable


class Screen(Protocol):
    """A place to show text; `style` is "", title, note, error, place, quiet or odd."""

    def say(self, text: str, style: str = "") -> None:
        """Show lines."""

    def table(self, table: Table) -> None:
        """Show a table."""


class PlainScreen:
    """Lines and grids for pipes, `nc` and scripts."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def say(self, text: str, style: str = "") -> None:
        """Show lines, ignoring the style."""
        self._write(printable(text) + "\n")

    def table(self, table: Table) -> None:
        """Show a table with Monarch's lines."""
        self._write(grid(table) + "\n")


def screen_for_stdout() -> Screen:
    """Return the screen that fits standard output."""
    if is_terminal():
        from dap_mux.console.rich_screen import RichScreen  # noqa: PLC0415  (slow to import)

        return RichScreen()
    return PlainScreen(_print)


def _print(text: str) -> None:
    """Write to standard output and flush: a reader at the other end of a pipe waits for it."""
    print(text, end="", flush=True)  # noqa: T201


def is_terminal() -> bool:
    """Whether standard output is a terminal that supports cursor movement."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
