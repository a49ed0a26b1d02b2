"""Answers as a debug console shows them: plain text in a font of one width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dap_mux.engine.state.model import Body
from dap_mux.rank_sets.debuggees import DebuggeeId, label

FOLDED_ABOVE: Final = 32  # rows; more are one row for each class
MOST: Final = 16  # values that one line shows; the tree below it has all
_HEAD: Final = (
    "Actor Name",
    "Rank",
    "Coords",
    "Hostname",
    "Function",
    "Line No.",
    "State",
    "Reason",
)


def of_list(body: Body, *, folded: bool | None = None) -> str:
    """`list` as a table; one row for each class where that is asked for, or there are many."""
    ranks: list[Body] = body["ranks"]
    if folded or (folded is None and len(ranks) > FOLDED_ABOVE):
        rows = [_row(members) for members in _classes(ranks)]
    else:
        rows = [_row([entry]) for entry in ranks]
    counts = ", ".join(f"{count} {state}" for state, count in body["counts"].items() if count)
    return "\n".join([*(table(_HEAD, rows) if rows else []), counts or "no ranks"])


def _classes(ranks: Iterable[Body]) -> list[list[Body]]:
    classes: dict[tuple[object, ...], list[Body]] = {}
    for entry in ranks:
        keys = ("group", "state", "reason", "path", "function", "line")
        classes.setdefault(tuple(entry[key] for key in keys), []).append(entry)
    return sorted(classes.values(), key=lambda members: -len(members))


def _row(members: list[Body]) -> tuple[str, ...]:
    first = members[0]
    hosts = {entry["host"] for entry in members}
    place = ".".join(part for part in (first["module"], first["function"]) if part)
    return (
        first["group"],
        label(map(_id, members)),
        str(first["coords"] or "") if len(members) == 1 else "",
        (first["host"] or "") if len(hosts) == 1 else f"{len(hosts)} hosts",
        place,
        str(first["line"] or ""),
        first["state"],
        first["reason"] or "",
    )


def of_groups(body: Body) -> str:
    """`groups`, one line each: who is in it now, and how it was defined."""
    lines = [
        f"@{one['name']}: {one['ranks'] or 'nobody now'}"
        + (f" ({one['definition']})" if one["definition"] != one["ranks"] else "")
        for one in body["groups"]
    ]
    return "\n".join(lines) or "no names yet"


def _id(entry: Body) -> DebuggeeId:
    rank = entry["group"], entry["rank"]
    return rank if entry["worker"] is None else (*rank, entry["worker"])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table, columns as wide as they must be."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def merged(
    values: Sequence[tuple[str, str]],
    errors: Iterable[tuple[str, str]],
    missing: str,
    outliers: str = "",
) -> str:
    """`{0-3}: 2.31 | {4}: nan`; then who failed, and who did not answer."""
    parts = [f"{{{ranks}}}: {value}" for ranks, value in values]
    if len(parts) > MOST:
        parts[MOST // 2 : -MOST // 2] = [f"… {len(parts) - MOST} more values"]
    parts += [f"{{{ranks}}}: {message}" for ranks, message in errors]
    if outliers:
        parts.append(f"outliers: {outliers}")
    if missing:
        parts.append(f"no answer: {missing}")
    lines = any("\n" in value for _, value in values)
    return ("\n" if lines else " | ").join(parts) or "no ranks"


def number(value: float | None) -> str:
    """Six digits are enough to read."""
    return "-" if value is None else f"{value:.6g}"
