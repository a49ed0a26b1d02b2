"""The tables of `list`: Monarch's columns, one row for each rank or for each class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dap_mux.printable import one_line
from dap_mux.rank_rows import COLUMNS, FOLD_ABOVE, Row, classes, id_of, qualified_function, reason
from dap_mux.rank_sets import with_group
from dap_mux.rank_sets.debuggees import label

LAYOUTS: Final = ("classes", "full")
CLASS_COLUMNS: Final = (COLUMNS[0], "Ranks", "Count", *COLUMNS[4:])
_PADDING: Final = 2  # around heads, as in Monarch's tables


@dataclass(frozen=True)
class Table:
    """Cells of text; the columns whose indices are in `right` hold numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()


def parse_list_arguments(rest: str, default: str) -> tuple[str, str]:
    """Return the rank set, and the layout: "classes", "full" or ""."""
    if not rest:
        return default, ""
    arguments = rest.split()
    layout = next(
        (arguments.pop(end) for end in (0, -1) if arguments and arguments[end] in LAYOUTS), ""
    )
    return with_group(" ".join(arguments)) or default, layout


def ranks_table(rows: Sequence[Row], layout: str = "") -> Table:
    """Lay ranks out; with the layout "", more than `FOLD_ABOVE` of them are folded."""
    if layout == "classes" or (layout != "full" and len(rows) > FOLD_ABOVE):
        return Table(CLASS_COLUMNS, tuple(map(_class_cells, classes(rows))), frozenset({2, 4}))
    return Table(COLUMNS, tuple(map(_cells, rows)), frozenset({1, 5}))


def _class_cells(members: list[Row]) -> tuple[str, ...]:
    cells = _cells(members[0])
    ranks = label(id_of(row) for row in members)
    return (cells[0], ranks, str(len(members)), *cells[4:])


def _cells(row: Row) -> tuple[str, ...]:
    actor = row.get("actor")
    shown, name = (actor, actor["name"]) if actor else (row, row["group"])
    number = str(shown["rank"]) if row["worker"] is None else f"{shown['rank']}/{row['worker']}"
    line = "" if row["line"] is None else str(row["line"])
    place = str(shown["coords"] or ""), row["host"] or "", qualified_function(row), line
    cells = name, number, *place, row["state"], reason(row)
    return cells if "".join(cells).isprintable() else tuple(map(one_line, cells))


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
