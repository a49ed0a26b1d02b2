"""Rows of the request `list`: kept up to date by clients, and shown in Monarch's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from dap_mux.rank_sets.debuggees import DebuggeeId

Row: TypeAlias = Mapping[str, Any]
"""One entry of the request `list`; every key is present."""
Change: TypeAlias = "tuple[Row | None, Row]"
"""A rank's row before, if it was known, and now."""

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


class KeptRows:
    """The rows of a session's ranks, kept up to date by the request `list` and the event `ranks`.

    `all`: by rank or worker. A worker that has ended is in no list, so its last row is not kept.
    """

    def __init__(self) -> None:
        self.all: dict[DebuggeeId, Row] = {}
        self._listed: list[Row] | None = None  # given to `replace`, and no row has come since

    def replace(self, rows: list[Row]) -> list[Change]:
        """Store the rows of all that there are, and forget those that have left the session."""
        if rows == self._listed:  # nearly always: someone looks again
            return []
        present = {id_of(row) for row in rows}
        self.all = {id: row for id, row in self.all.items() if id in present}
        changes = self.update(rows)
        self._listed = rows
        return changes

    def update(self, rows: Iterable[Row]) -> list[Change]:
        """Store rows; return those that are new or different, each with the one before it."""
        self._listed = None
        changes = [(self._store(row), row) for row in rows]
        return [(before, now) for before, now in changes if before != now]

    def _store(self, row: Row) -> Row | None:
        id = id_of(row)
        before, self.all[id] = self.all.get(id), row
        if row["worker"] is not None and row["state"] == "exited":
            del self.all[id]
        return before


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
