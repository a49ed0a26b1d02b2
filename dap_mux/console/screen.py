"""Where a console writes: a terminal with colour and drawn tables, or plain lines.

Everything that is shown passes through here, and here what ranks say loses its control
characters (promise S10).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol

from dap_mux.console.tables import Table, grid
from dap_mux.printable import printable


class Screen(Protocol):
    """`style` is "", title, note, error, place, quiet or odd."""

    def say(self, text: str, style: str = "") -> None:
        """Show lines."""

    def table(self, table: Table) -> None:
        """Show a table."""


class PlainScreen:
    """Lines and grids for pipes, `nc` and scripts."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def say(self, text: str, style: str = "") -> None:
        """Show lines; a style is nothing here."""
        self._write(printable(text) + "\n")

    def table(self, table: Table) -> None:
        """Show a table as Monarch does."""
        self._write(grid(table) + "\n")


def screen_for_stdout() -> Screen:
    """Return what fits standard output."""
    if is_terminal():
        from dap_mux.console.rich_screen import RichScreen  # noqa: PLC0415  (nobody else pays)

        return RichScreen()
    return PlainScreen(_print)


def _print(text: str) -> None:
    """Write to standard output at once: who reads it at the other end of a pipe types next."""
    print(text, end="", flush=True)  # noqa: T201


def is_terminal() -> bool:
    """Whether a person with a terminal that can do more than lines is there."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
