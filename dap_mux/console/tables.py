"""The tables of `list`: Monarch's columns, a row for each rank or for each place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from dap_mux.console.picture import Row, id_of
from dap_mux.printable import one_line
from dap_mux.rank_sets import with_group
from dap_mux.rank_sets.debuggees import label

FOLD_ABOVE: Final = 32  # ranks
HOW: Final = ("classes", "full")
_PADDING: Final = 2  # around heads, as Monarch's tables have it


@dataclass(frozen=True)
class Table:
    """Cells of text; the columns numbered in `right` hold numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()


def list_words(rest: str, default: str) -> tuple[str, str]:
    """Return which ranks, and how they are laid out: "classes", "full" or ""."""
    words = rest.split()
    how = next((words.pop(end) for end in (0, -1) if words and words[end] in HOW), "")
    return with_group(" ".join(words)) or default, how


def ranks_table(rows: Sequence[Row], how: str = "") -> Table:
    """Lay ranks out; `how` is "full", "classes", or "" for what their number asks for."""
    if how == "classes" or (how != "full" and len(rows) > FOLD_ABOVE):
        return _folded(rows)
    head = ("Actor Name", "Rank", "Coords", "Hostname", "Function", "Line No.", "State", "Reason")
    return Table(head, tuple(map(_cells, rows)), frozenset({1, 5}))


def _folded(rows: Sequence[Row]) -> Table:
    """One row for all ranks of a group at one place, in one state; the most ranks first."""
    head = ("Actor Name", "Ranks", "Count", "Function", "Line No.", "State", "Reason")
    classes = [list(members) for _, members in groupby(sorted(rows, key=_class), key=_class)]
    classes.sort(key=lambda members: (-len(members), id_of(members[0])))
    return Table(head, tuple(map(_class_cells, classes)), frozenset({2, 4}))


def _class(row: Row) -> tuple[str, ...]:
    where = (row["group"], row["path"], row["function"], row["line"], row["state"], reason(row))
    return tuple(map(str, where))


def _class_cells(members: list[Row]) -> tuple[str, ...]:
    cells = _cells(members[0])
    ranks = label(id_of(row) for row in members)
    return (cells[0], ranks, str(len(members)), *cells[4:])


def _cells(row: Row) -> tuple[str, ...]:
    number = str(row["rank"]) if row["worker"] is None else f"{row['rank']}/{row['worker']}"
    where = [number, str(row["coords"] or ""), row["host"], function(row), row["line"]]
    cells = [row["group"], *where, row["state"], reason(row)]
    return tuple("" if cell is None else one_line(str(cell)) for cell in cells)


def function(row: Row) -> str:
    """`module.function`, as Monarch writes it."""
    return ".".join(part for part in (row["module"], row["function"]) if part)


def reason(row: Row) -> str:
    """Why the rank is in its state."""
    code = row["exitCode"]
    return str(row["reason"] or "") if code is None else f"exit code {code}"


def grid(table: Table) -> str:
    """Draw a table with the characters that Monarch's has."""
    columns = list(zip(table.head, *table.rows, strict=True))
    widths = [
        max(len(column[0]) + _PADDING, *map(len, column[1:])) if table.rows else len(column[0]) + 2
        for column in columns
    ]
    lines = [_rule(widths, "-"), _line(table.head, widths, table.right), _rule(widths, "=")]
    for row in table.rows:
        lines += [_line(row, widths, table.right), _rule(widths, "-")]
    return "\n".join(lines)


def _rule(widths: Iterable[int], dash: str) -> str:
    return "+" + "+".join(dash * (width + 2) for width in widths) + "+"


def _line(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = (
        cell.rjust(width) if place in right else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join(padded) + " |"
