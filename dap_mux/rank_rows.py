"""Rows of the request `list`, as every table of ranks shows them: in Monarch's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from dap_mux.rank_sets.debuggees import DebuggeeId

Row: TypeAlias = Mapping[str, Any]
"""One entry of the request `list`; every key is present."""

COLUMNS: Final = (
    "Actor Name",
    "Rank",
    "Coords",
    "Hostname",
    "Function",
    "Line No.",
    "State",
    "Reason",
)
FOLD_ABOVE: Final = 32
"""Above this many rows, a table has one row for each class."""


def id_of(row: Row) -> DebuggeeId:
    """Return the id of the rank or worker that a row describes."""
    rank = row["group"], row["rank"]
    return rank if row["worker"] is None else (*rank, row["worker"])


def qualified_function(row: Row) -> str:
    """Return `module.function`, as Monarch writes it."""
    module, function = row["module"] or "", row["function"] or ""
    return f"{module}.{function}" if module and function else module or function


def reason(row: Row) -> str:
    """Return why the rank is in its state."""
    code = row["exitCode"]
    return str(row["reason"] or "") if code is None else f"exit code {code}"


def classes(rows: Iterable[Row]) -> list[list[Row]]:
    """Group rows of one group that are at the same place in the same state, largest first."""
    members: dict[tuple[str, ...], list[Row]] = {}
    for row in sorted(rows, key=id_of):
        place = row["group"], row["path"], row["function"], row["line"], row["state"], reason(row)
        members.setdefault(tuple(map(str, place)), []).append(row)
    return sorted(members.values(), key=lambda rows: -len(rows))


def count_text(counts: Mapping[str, int]) -> str:
    """Return `12 stopped, 4 running` for the counts that `list` sends."""
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)
