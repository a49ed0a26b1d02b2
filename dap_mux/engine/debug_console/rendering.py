"""Answers as a debug console shows them: plain text in a font of one width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dap_mux.engine.state.bodies import Body
from dap_mux.rank_rows import (
    COLUMNS,
    FOLD_ABOVE,
    Row,
    classes,
    count_text,
    id_of,
    qualified_function,
    reason,
)
from dap_mux.rank_sets.debuggees import label
from dap_mux.rank_values import SEPARATOR, RankValue, side_by_side

MAX_VALUES: Final = 16  # values that one line shows; the tree below it has all


def of_list(body: Body, *, folded: bool | None = None) -> str:
    """Return `list` as a table; by default many ranks are folded to a row for each class."""
    ranks: list[Row] = body["ranks"]
    if folded or (folded is None and len(ranks) > FOLD_ABOVE):
        rows = [_cells(members) for members in classes(ranks)]
    else:
        rows = [_cells([row]) for row in ranks]
    counts = count_text(body["counts"])
    return "\n".join([*(table(COLUMNS, rows) if rows else []), counts or "no ranks"])


def _cells(members: list[Row]) -> tuple[str, ...]:
    first = members[0]
    hosts = {row["host"] for row in members}
    return (
        first["group"],
        label(map(id_of, members)),
        str(first["coords"] or "") if len(members) == 1 else "",
        (first["host"] or "") if len(hosts) == 1 else f"{len(hosts)} hosts",
        qualified_function(first),
        str(first["line"] or ""),
        first["state"],
        reason(first),
    )


def of_groups(body: Body) -> str:
    """`groups`, one line each: who is in it now, and how it was defined."""
    lines = [
        f"@{one['name']}: {one['ranks'] or '(empty)'}"
        + (f" ({one['definition']})" if one["definition"] != one["ranks"] else "")
        for one in body["groups"]
    ]
    return "\n".join(lines) or "no names yet"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, columns as wide as they must be."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def merged(values: Sequence[RankValue], errors: Iterable[tuple[str, str]], missing: str) -> str:
    """`⚠ {4}: nan | {0-3}: 2.31`; then who failed, and who did not answer."""
    parts = side_by_side(values)
    if len(parts) > MAX_VALUES:
        parts[MAX_VALUES:] = [f"… {len(parts) - MAX_VALUES} more values"]
    parts += [f"{{{ranks}}}: {message}" for ranks, message in errors]
    if missing:
        parts.append(f"no answer: {missing}")
    lines = any("\n" in one.value for one in values)
    return ("\n" if lines else SEPARATOR).join(parts) or "no ranks"


def number(value: float | None) -> str:
    """Six digits are enough to read."""
    return "-" if value is None else f"{value:.6g}"
