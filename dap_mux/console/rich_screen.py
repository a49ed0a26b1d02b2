"""The screen on a terminal, with rich: colour, and tables with drawn lines."""

from __future__ import annotations

from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table as DrawnTable
from rich.text import Text

from dap_mux.console.tables import Table
from dap_mux.printable import printable

STYLES: Final = {
    "title": "bold",
    "note": "cyan",
    "error": "red",
    "place": "bold",
    "quiet": "dim",
    "odd": "yellow",
}
STATE_STYLES: Final = {"stopped": "yellow", "running": "green", "lost": "red", "exited": "dim"}


class RichScreen:
    """Prints to the current `sys.stdout`, because prompt_toolkit replaces it."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(highlight=False, markup=False, emoji=False)

    def say(self, text: str, style: str = "") -> None:
        """Show lines; long ones wrap."""
        shown = Text(printable(text), style=STYLES.get(style, ""))
        self._console.print(shown, soft_wrap=True)

    def table(self, table: Table) -> None:
        """Draw a table as wide as the terminal allows."""
        drawn = DrawnTable(box=box.ROUNDED, header_style="bold")
        for index, head in enumerate(table.head):
            drawn.add_column(head, justify="right" if index in table.right else "left")
        for row in table.rows:
            drawn.add_row(*(Text(cell, style=STATE_STYLES.get(cell, "")) for cell in row))
        self._console.print(drawn)
