"""Rows of the request `list`: kept up to date by clients, and shown in Monarch's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from dap_mux.pure.rank_sets import STATES, Mesh, RankSet, RankSetError, World, parse
from dap_mux.pure.rank_sets.world import DebuggeeId, label

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
WHOLE: Final = "threadId"
"""A key that only a whole row has: it never changes."""

FOLD_ABOVE: Final = 32
"""Above this many rows, a table has one row for each class."""


class KeptRows:
    """The rows of a session's ranks, kept up to date by the request `list` and the event `ranks`.

    `all`: by rank or worker. A worker that has ended is in no list, so its last row is not kept.
    """

    def __init__(self) -> None:
        self.all: dict[DebuggeeId, Row] = {}

    def replace(self, rows: list[Row]) -> list[Change]:
        """Store the rows of all that there are, and forget those that have left the session."""
        present = {id_of(row) for row in rows}
        self.all = {id: row for id, row in self.all.items() if id in present}
        return self.update(rows)

    def update(self, rows: Iterable[Row]) -> list[Change]:
        """Store rows, or what changed of them, as the event `ranks` tells it.

        Return those that are new or different, each with the one before it. A change of a rank
        that is not known yet is passed over: the listing that is under way has it.
        """
        known = [(row, self.all.get(id_of(row))) for each in rows for row in _unfolded(each)]
        changes = [
            (before, self._store(row if WHOLE in row else {**(before or {}), **row}))
            for row, before in known
            if before is not None or WHOLE in row
        ]
        return [(before, now) for before, now in changes if before != now]

    def fold(self, ids: Iterable[DebuggeeId]) -> str:
        """Return ranks as a rank set that the session can parse (not so for workers)."""
        ids = list(ids)
        text = label(ids)
        groups = {id[0] for id in ids}
        return f"{groups.pop()}:{text}" if len(groups) == 1 < len(self.groups) else text

    @property
    def groups(self) -> list[str]:
        """The groups' names."""
        return sorted({id[0] for id in self.all})

    def world(self, names: Iterable[tuple[str, str]]) -> World:
        """Return the world to evaluate rank sets in; `names`: named sets and their definitions."""
        ranks = {id: row for id, row in self.all.items() if len(id) == 2}
        places: dict[str, dict[int, Mapping[str, int]]] = {}
        for (group, rank), row in ranks.items():
            if row["coords"]:
                places.setdefault(group, {})[rank] = row["coords"]
        return World(
            ranks=tuple(sorted(ranks)),
            meshes={group: _mesh(of_group) for group, of_group in places.items()},
            states={id: row["state"] for id, row in ranks.items() if row["state"] in STATES},
            names={name: one for name, text in names if (one := _rank_set(text)) is not None},
        )

    def _store(self, row: Row) -> Row:
        id = id_of(row)
        self.all[id] = row
        if row["worker"] is not None and row["state"] == "exited":
            del self.all[id]
        return row


def _unfolded(row: Row) -> list[Row]:
    """Return a row for each rank of an entry of the event `ranks`."""
    ranks = row["rank"]
    return [{**row, "rank": rank} for rank in ranks] if isinstance(ranks, list) else [row]


def _mesh(places: Mapping[int, Mapping[str, int]]) -> Mesh:
    sizes: dict[str, int] = {}
    for place in places.values():
        for name, where in place.items():
            sizes[name] = max(sizes.get(name, 0), where + 1)
    return Mesh(tuple(sizes.items()), dict(places))


def _rank_set(text: str) -> RankSet | None:
    try:
        return parse(text)
    except RankSetError:
        return None


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
