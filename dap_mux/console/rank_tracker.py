"""The state of each rank as a console knows it, and which changes its user should hear of."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from dap_mux.rank_rows import Change, KeptRows, Row, id_of
from dap_mux.rank_sets import RankId
from dap_mux.rank_sets.debuggees import DebuggeeId


class RankTracker(KeptRows):
    """The rows by rank, and what is said about them."""

    @property
    def rows(self) -> dict[RankId, Row]:
        """The rows of ranks, without their workers."""
        mains = (row for row in self.all.values() if row["worker"] is None)
        return {(row["group"], row["rank"]): row for row in mains}

    def name(self, ranks: Iterable[DebuggeeId]) -> str:
        """Return `rank 3`, `ranks 0-3,7`, or with several groups `ranks trainer:0-3; eval:0`.

        Worker 1 of rank 3 is `rank 3/1`.
        """
        ranks = list(ranks)
        return f"{'rank' if len(ranks) == 1 else 'ranks'} {self.fold(ranks)}"

    def counts(self) -> str:
        """Return `12 stopped, 4 running`."""
        states = [row["state"] for row in self.all.values()]
        order = sorted(set(states), key=lambda state: (state != "stopped", state))
        return ", ".join(f"{states.count(state)} {state}" for state in order)

    def announcements(self, changes: Iterable[Change]) -> list[str]:
        """Return one line for each kind of change: ranks that stopped, were lost or ended."""
        ranks_by_event: dict[str, list[DebuggeeId]] = {}
        for before, now in changes:
            event = describe_event(now)
            again = before is not None and before["state"] == now["state"] == "exited"
            if event and not again and (before is None or event != describe_event(before)):
                ranks_by_event.setdefault(event, []).append(id_of(now))
        return [f"{self.name(ranks)} {event}" for event, ranks in ranks_by_event.items()]


def settled(row: Row) -> bool:
    """Whether the rank is stopped, and its location is known."""
    return row["state"] == "stopped" and row["reason"] is not None


def stopped_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that the rank set `stopped` selects: of ranks, and of their workers."""
    rows = list(rows)
    mains = (row for row in rows if row["worker"] is None and row["state"] == "stopped")
    ranks = {(row["group"], row["rank"]) for row in mains}
    return [row for row in rows if (row["group"], row["rank"]) in ranks]


def short_location(row: Row) -> str:
    """Return `train.py:41`, or "" while it is unknown."""
    return f"{PurePath(row['path']).name}:{row['line']}" if row["path"] else ""


def describe_event(row: Row) -> str:
    """Describe what has happened to the rank; "" if there is nothing to announce."""
    if settled(row):
        where = f" at {short_location(row)}" if short_location(row) else ""
        return f"stopped{where} ({row['reason']})"
    if row["state"] == "lost":
        return "lost" + (f": {row['reason']}" if row["reason"] else "")
    if row["state"] == "exited" and row["worker"] is None:
        code = row["exitCode"]
        return "ended" if code is None else f"ended with exit code {code}"
    return ""
