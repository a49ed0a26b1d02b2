"""The state of a session's ranks: where they are stopped, by file and line."""

from __future__ import annotations

import os.path
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from dap_mux.rank_rows import KeptRows, Row, id_of
from dap_mux.rank_sets import RankId, World
from dap_mux.rank_sets.debuggees import DebuggeeId, label, rank_of

LIVE: Final = frozenset({"running", "pausing", "stopped"})
DEFAULT_GROUP: Final = "job"
LineNow: TypeAlias = Callable[[int, float], int | None]
"""Where a line is in the editor's text that a rank runs which has then started."""


def unmoved(line: int, _started: float) -> int:
    """A text that was not edited."""
    return line


@dataclass(frozen=True)
class StoppedRanks:
    """Ranks and workers stopped at one line (1-based) of one file, and why.

    `path`: the file as the session names it. `shown`: the line in the editor's text.
    """

    path: str
    line: int
    shown: int
    ids: tuple[DebuggeeId, ...]
    reasons: tuple[str, ...]

    @property
    def label(self) -> str:
        """`0-3,7`."""
        return label(self.ids, DEFAULT_GROUP)


class RankState:
    """Rows as in `list`, kept up to date.

    `revision` counts the changes of where ranks are stopped, and of which ranks are live.
    """

    def __init__(self) -> None:
        self.revision = 0
        self._kept = KeptRows()
        self._started: dict[DebuggeeId, float] = {}

    def replace(self, rows: Iterable[Row], started: float = 0.0) -> None:
        """Replace all rows; `started`: when these ranks did, in seconds since the epoch."""
        before = _places(self._rows)
        self._kept.replace(list(rows))
        self._start(before, started)

    def update(self, rows: Iterable[Row]) -> None:
        """Apply changed rows."""
        before = _places(self._rows)
        for old, new in self._kept.update(rows):
            if old is None or old["pid"] != new["pid"]:
                self._started.pop(id_of(new), None)
        self._start(before, time.time())

    def _start(self, before: Mapping[DebuggeeId, object], now: float) -> None:
        self._started = {id: self._started.get(id, now) for id in self._rows}
        self.revision += _places(self._rows) != before

    @property
    def _rows(self) -> Mapping[DebuggeeId, Row]:
        return self._kept.all

    def stopped_in(self, path: str, line_now: LineNow = unmoved) -> list[StoppedRanks]:
        """Return where ranks are stopped in a file, by line; lines that are gone are left out."""
        file = same_file(path)
        found: dict[tuple[int, int], dict[DebuggeeId, Row]] = {}
        for id, row in sorted(self._rows.items()):
            if _is_stopped(row) and same_file(row["path"]) == file:
                shown = line_now(row["line"], self._started[id])
                if shown is not None:
                    found.setdefault((shown, row["line"]), {})[id] = row
        return [_stopped_ranks(*lines, rows) for lines, rows in sorted(found.items())]

    def ranks_elsewhere(self, standing: StoppedRanks) -> str:
        """Return the live ranks that are not stopped there, as a rank set; "" for none."""
        here = {rank_of(id) for id in standing.ids}
        others = {rank_of(id) for id, row in self._rows.items() if row["state"] in LIVE} - here
        return self.name(others)

    def name(self, ranks: Iterable[RankId]) -> str:
        """Return a rank set for exactly these ranks, with their group if there are several."""
        return self._kept.fold(set(ranks))

    def hosts(self) -> list[str]:
        """Return the names of all hosts."""
        return sorted({row["host"] for row in self._rows.values() if row["host"]})

    def world(self, names: Mapping[str, str]) -> World:
        """Return the world to evaluate rank sets in; `names`: named sets and their definitions."""
        return self._kept.world(names.items())


@lru_cache(maxsize=4096)
def same_file(path: str) -> str:
    """Return a canonical path, to compare paths by."""
    return os.path.normcase(os.path.realpath(path))


def _places(rows: Mapping[DebuggeeId, Row]) -> Mapping[DebuggeeId, object]:
    return {
        id: (row["path"], row["line"], row["reason"]) if _is_stopped(row) else None
        for id, row in rows.items()
        if row["state"] in LIVE
    }


def _is_stopped(row: Row) -> bool:
    return bool(row["state"] == "stopped" and row["path"] and row["line"])


def _stopped_ranks(shown: int, line: int, rows: Mapping[DebuggeeId, Row]) -> StoppedRanks:
    reasons = dict.fromkeys(row["reason"] or "stopped" for row in rows.values())
    path = next(iter(rows.values()))["path"]
    return StoppedRanks(path, line, shown, tuple(rows), tuple(reasons))
