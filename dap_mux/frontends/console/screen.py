"""Where a console writes: a terminal with colour and drawn tables, or plain lines.

All text that is shown passes through here, and control characters in it are escaped: the output
of ranks must never control the user's terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from dap_mux.pure.printable import printable

_PADDING: Final = 2  # around heads, as in Monarch's tables
STYLES: Final = {
    "title": "bold",
    "note": "cyan",
    "error": "red",
    "place": "bold",
    "quiet": "dim",
    "odd": "yellow",
}
STATE_STYLES: Final = {"stopped": "yellow", "running": "green", "lost": "red", "exited": "dim"}


@dataclass(frozen=True)
class Table:
    """Cells of text; the columns whose indices are in `right` hold numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()


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


def grid(table: Table) -> str:
    """Draw a table with the same characters as Monarch."""
    columns = zip(table.head, *table.rows, strict=True)
    widths = [max(len(column[0]) + _PADDING, *map(len, column)) for column in columns]
    cells = (f"%{width if at in table.right else -width}s" for at, width in enumerate(widths))
    rule, double = _rule(widths, "-"), _rule(widths, "=")
    line = f"| {' | '.join(cells)} |\n"
    rows = [line % row + rule for row in table.rows]
    return "\n".join([rule, line % table.head + double, *rows])


def _rule(widths: Iterable[int], dash: str) -> str:
    return "+" + "+".join(dash * (width + 2) for width in widths) + "+"


class RichScreen:
    """Colour, and tables with drawn lines, by rich: imported here, for that takes its time.

    It prints to the current `sys.stdout`, because prompt_toolkit replaces it.
    """

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415

        self._console = Console(highlight=False, markup=False, emoji=False)

    def say(self, text: str, style: str = "") -> None:
        """Show lines; long ones wrap."""
        from rich.text import Text  # noqa: PLC0415

        shown = Text(printable(text), style=STYLES.get(style, ""))
        self._console.print(shown, soft_wrap=True)

    def table(self, table: Table) -> None:
        """Draw a table as wide as the terminal allows."""
        from rich import box  # noqa: PLC0415
        from rich.table import Table as DrawnTable  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        drawn = DrawnTable(box=box.ROUNDED, header_style="bold")
        for index, head in enumerate(table.head):
            drawn.add_column(head, justify="right" if index in table.right else "left")
        for row in table.rows:
            drawn.add_row(*(Text(cell, style=STATE_STYLES.get(cell, "")) for cell in row))
        self._console.print(drawn)


def screen_for_stdout() -> Screen:
    """Return the screen that fits standard output."""
    if is_terminal():
        return RichScreen()
    return PlainScreen(_print)


def _print(text: str) -> None:
    """Write to standard output and flush: a reader at the other end of a pipe waits for it."""
    print(text, end="", flush=True)  # noqa: T201


def is_terminal() -> bool:
    """Whether standard output is a terminal that supports cursor movement."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
