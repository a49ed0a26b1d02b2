"""Columns of text for a terminal; what ranks say never reaches it raw."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str) -> str:
    """Show control characters as escapes: a rank's words must not drive the user's terminal."""
    return "".join(
        letter
        if letter.isprintable() or letter == "\n"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def columns(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Left-justify rows under their heads; None is empty, and a wholly empty column is left out."""
    cells = [[_cell(value) for value in row] for row in rows]
    shown = [index for index in range(len(head)) if any(row[index] for row in cells)]
    lines = [[row[index] for index in shown] for row in [list(head), *cells]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(shown))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    return "" if value is None else printable(str(value)).replace("\n", "\\n")
