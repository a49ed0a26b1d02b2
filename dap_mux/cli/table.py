"""Columns of text for a terminal, with control characters escaped."""

from __future__ import annotations

from collections.abc import Sequence

from dap_mux.printable import one_line


def columns(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Left-justify rows under their heads; None is empty, and empty columns are omitted."""
    cells = [[_cell(value) for value in row] for row in rows]
    shown = [index for index in range(len(head)) if any(row[index] for row in cells)]
    lines = [[row[index] for index in shown] for row in [list(head), *cells]]
    widths = [max(len(line[place]) for line in lines) for place in range(len(shown))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    return "" if value is None else one_line(str(value))
