"""What a console knows of each rank, and which changes are news to its user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, TypeAlias

from dap_mux.rank_sets import RankId
from dap_mux.rank_sets.debuggees import DebuggeeId, label, rank_of

Row: TypeAlias = Mapping[str, Any]
"""One entry of the request `list`; every key is present."""

Change: TypeAlias = "tuple[Row | None, Row]"
"""What was known of a rank before, and what is known now."""


class Picture:
    """The rows by rank, kept up to date by `list` and by the event `ranks`."""

    def __init__(self) -> None:
        self.rows: dict[RankId, Row] = {}
        self.workers: dict[DebuggeeId, Row] = {}

    def forget_all_but(self, rows: Iterable[Row]) -> None:
        """Forget ranks and workers that are in the session no longer."""
        there = {id_of(row) for row in rows}
        self.rows = {id: row for id, row in self.rows.items() if id in there}
        self.workers = {id: row for id, row in self.workers.items() if id in there}

    def take(self, rows: Iterable[Row]) -> list[Change]:
        """Put rows in; return each that was new or different, behind what was there before."""
        changes = [(self._put(row), row) for row in rows]
        return [(before, now) for before, now in changes if before != now]

    def _put(self, row: Row) -> Row | None:
        """Put a row in and return the one before; a worker's end is the last of it."""
        id = id_of(row)
        if row["worker"] is None:
            before, self.rows[rank_of(id)] = self.rows.get(rank_of(id)), row
            return before
        before = self.workers.pop(id, None)
        if row["state"] != "exited":
            self.workers[id] = row
        return before

    @property
    def groups(self) -> list[str]:
        """The groups' names."""
        return sorted({group for group, _ in self.rows})

    def name(self, ranks: Iterable[DebuggeeId]) -> str:
        """`rank 3`, `ranks 0-3,7`, and with several groups `ranks trainer:0-3; eval:0`.

        Worker 1 of rank 3 is `rank 3/1`.
        """
        ranks = list(ranks)
        return f"{'rank' if len(ranks) == 1 else 'ranks'} {self.fold(ranks)}"

    def fold(self, ranks: Iterable[DebuggeeId]) -> str:
        """Write ranks as a rank set that a session reads back; workers have no such."""
        ranks = list(ranks)
        text = label(ranks)
        groups = {id[0] for id in ranks}
        return f"{groups.pop()}:{text}" if len(groups) == 1 < len(self.groups) else text

    def counts(self) -> str:
        """`12 stopped, 4 running`."""
        states = [row["state"] for row in (*self.rows.values(), *self.workers.values())]
        order = sorted(set(states), key=lambda state: (state != "stopped", state))
        return ", ".join(f"{states.count(state)} {state}" for state in order)

    def news(self, changes: Iterable[Change]) -> list[str]:
        """Say what a user wants to hear: who stopped where, who is lost or has ended."""
        told: dict[str, list[DebuggeeId]] = {}
        for before, now in changes:
            text = event(now)
            again = before is not None and before["state"] == now["state"] == "exited"
            if text and not again and (before is None or text != event(before)):
                told.setdefault(text, []).append(id_of(now))
        return [f"{self.name(ranks)} {text}" for text, ranks in told.items()]


def id_of(row: Row) -> DebuggeeId:
    """Return whose row it is."""
    rank = row["group"], row["rank"]
    return rank if row["worker"] is None else (*rank, row["worker"])


def settled(row: Row) -> bool:
    """Whether the rank is stopped, and where is known."""
    return row["state"] == "stopped" and row["reason"] is not None


def stopped_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that the rank set `stopped` means: of ranks, and of their workers."""
    rows = list(rows)
    ranks = {id_of(row) for row in rows if row["worker"] is None and row["state"] == "stopped"}
    return [row for row in rows if rank_of(id_of(row)) in ranks]


def place(row: Row) -> str:
    """`train.py:41`; "" where it is not known."""
    return f"{PurePath(row['path']).name}:{row['line']}" if row["path"] else ""


def event(row: Row) -> str:
    """What has happened to the rank, in words; "" for what is no news."""
    if settled(row):
        where = f" at {place(row)}" if place(row) else ""
        return f"stopped{where} ({row['reason']})"
    if row["state"] == "lost":
        return "lost" + (f": {row['reason']}" if row["reason"] else "")
    if row["state"] == "exited" and row["worker"] is None:
        code = row["exitCode"]
        return "ended" if code is None else f"ended with exit code {code}"
    return ""
