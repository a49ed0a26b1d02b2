"""Assigns numbers to ranks that appear and disappear: stable, and never used twice."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from dap_mux.cluster.records import RankRecord
from dap_mux.rank_sets import RankId


def id_of(record: RankRecord) -> RankId:
    """Return the id of a numbered rank: group and number."""
    assert record.rank is not None
    return record.group, record.rank


@dataclass
class RankRegistry:
    """The present ranks, by owner (an endpoint of the command line)."""

    _present: dict[RankId, tuple[Hashable, RankRecord]] = field(default_factory=dict)

    def enter(self, owner: Hashable, records: Sequence[RankRecord]) -> list[RankRecord]:
        """Add numbered ranks, which are without duplicates."""
        return self.update(owner, records)[0]

    def update(
        self, owner: Hashable, records: Iterable[RankRecord]
    ) -> tuple[list[RankRecord], list[str]]:
        """Replace an owner's ranks; return them numbered, and the problems of those left out.

        A rank without a number keeps the one that its address had, or gets the lowest free one:
        that of a missing rank, if it has come in its place.
        """
        before = {(r.host, r.port): id for id, (who, r) in self._present.items() if who == owner}
        self._present = {id: held for id, held in self._present.items() if held[0] != owner}
        problems = []
        records = list(records)
        for record in records:
            known = before.get((record.host, record.port))
            if record.rank is None and known and known[0] == record.group:
                record = replace(record, rank=known[1])  # noqa: PLW2901  (its old number)
            if record.rank is not None:
                problems += self._place(owner, record)
        placed = {(r.host, r.port) for who, r in self._present.values() if who == owner}
        for record in records:
            if record.rank is None and (record.host, record.port) not in placed:
                problems += self._place(owner, replace(record, rank=self._free(record.group)))
        return [record for who, record in self._present.values() if who == owner], problems

    def _free(self, group: str) -> int:
        return next(number for number in count() if (group, number) not in self._present)

    def _place(self, owner: Hashable, record: RankRecord) -> list[str]:
        _, other = self._present.setdefault(id_of(record), (owner, record))
        if other is record:
            return []
        where = f"{other.endpoint} and {record.endpoint}"
        name = f"rank {record.rank} of group {record.group}"
        return [f"duplicate {name}: {where}; the second is ignored"]
