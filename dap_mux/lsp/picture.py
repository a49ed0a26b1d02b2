"""What the session has told of its ranks: where they stand, by file and line."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dap_mux.rank_sets import STATES, Mesh, RankId, RankSetError, World, fold, parse
from dap_mux.rank_sets.debuggees import DebuggeeId, label, rank_of

Row: TypeAlias = Mapping[str, Any]
LIVE: Final = frozenset({"running", "pausing", "stopped"})
GONE: Final = frozenset({"exited", "lost"})
DEFAULT_GROUP: Final = "job"


@dataclass(frozen=True)
class Standing:
    """Ranks and workers stopped at one line (1-based) of one file, and why.

    `path`: the file as the session names it.
    """

    path: str
    line: int
    ids: tuple[DebuggeeId, ...]
    reasons: tuple[str, ...]

    @property
    def label(self) -> str:
        """`0-3,7`."""
        return label(self.ids, DEFAULT_GROUP)


class Picture:
    """Rows as in `list`, kept up to date.

    `moves`: how often who stands where, or who lives, has changed; there and back are two.
    """

    def __init__(self) -> None:
        self.moves = 0
        self._rows: dict[DebuggeeId, Row] = {}

    def draw(self, rows: Iterable[Row]) -> None:
        """Begin anew with all there is."""
        self._take({_id(row): row for row in rows})

    def change(self, rows: Iterable[Row]) -> None:
        """Take in what has changed; a worker that has ended is in no list any more."""
        changed = dict(self._rows)
        for row in rows:
            changed[_id(row)] = row
            if row["worker"] is not None and row["state"] in GONE:
                del changed[_id(row)]
        self._take(changed)

    def _take(self, rows: dict[DebuggeeId, Row]) -> None:
        before, self._rows = _places(self._rows), rows
        self.moves += _places(rows) != before

    def standing(self, path: str) -> list[Standing]:
        """Return where ranks stand in a file, from its top to its end."""
        file = same_file(path)
        found: dict[int, dict[DebuggeeId, Row]] = {}
        for id, row in sorted(self._rows.items()):
            if _stands(row) and same_file(row["path"]) == file:
                found.setdefault(row["line"], {})[id] = row
        return [_standing(line, rows) for line, rows in sorted(found.items())]

    def elsewhere(self, standing: Standing) -> str:
        """Return the ranks that live and do not stand there, as a rank set; "" for none."""
        here = {rank_of(id) for id in standing.ids}
        others = {rank_of(id) for id, row in self._rows.items() if row["state"] in LIVE} - here
        return self.name(others)

    def name(self, ranks: Iterable[RankId]) -> str:
        """Return a rank set that means exactly these ranks, whatever groups there are."""
        ids = sorted(set(ranks))
        groups = {id[0] for id in self._rows}
        if len(groups) > 1 and len({group for group, _ in ids}) == 1:
            return f"{ids[0][0]}:{fold(ids)}"
        return fold(ids, DEFAULT_GROUP)

    def hosts(self) -> list[str]:
        """Return the names of all hosts."""
        return sorted({row["host"] for row in self._rows.values() if row["host"]})

    def world(self, names: Mapping[str, str]) -> World:
        """Return what rank sets can speak of; `names`: named sets and their definitions."""
        ranks = {id: row for id, row in self._rows.items() if len(id) == 2}
        groups: dict[str, dict[int, Mapping[str, int]]] = {}
        for (group, rank), row in ranks.items():
            if row["coords"]:
                groups.setdefault(group, {})[rank] = row["coords"]
        return World(
            ranks=tuple(sorted(ranks)),
            meshes={group: _mesh(places) for group, places in groups.items()},
            states={id: row["state"] for id, row in ranks.items() if row["state"] in STATES},
            names={name: one for name, text in names.items() if (one := _read(text)) is not None},
        )


@lru_cache(maxsize=4096)
def same_file(path: str) -> str:
    """Return what two spellings of one file share."""
    return os.path.normcase(os.path.realpath(path))


def _id(row: Row) -> DebuggeeId:
    rank: RankId = (row["group"], row["rank"])
    return rank if row["worker"] is None else (*rank, row["worker"])


def _places(rows: Mapping[DebuggeeId, Row]) -> Mapping[DebuggeeId, object]:
    return {
        id: (row["path"], row["line"], row["reason"]) if _stands(row) else None
        for id, row in rows.items()
        if row["state"] in LIVE
    }


def _stands(row: Row) -> bool:
    return bool(row["state"] == "stopped" and row["path"] and row["line"])


def _standing(line: int, rows: Mapping[DebuggeeId, Row]) -> Standing:
    reasons = dict.fromkeys(row["reason"] or "stopped" for row in rows.values())
    path = next(iter(rows.values()))["path"]
    return Standing(path, line, tuple(rows), tuple(reasons))


def _mesh(places: Mapping[int, Mapping[str, int]]) -> Mesh:
    sizes: dict[str, int] = {}
    for place in places.values():
        for name, where in place.items():
            sizes[name] = max(sizes.get(name, 0), where + 1)
    return Mesh(tuple(sizes.items()), dict(places))


def _read(text: str) -> Any:
    try:
        return parse(text)
    except RankSetError:
        return None
