"""The numbers of ranks that come and go: a rank keeps its own, and nobody has another's."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias

from dap_mux.cluster.records import RankRecord

Id: TypeAlias = tuple[str, int]  # group and rank


def id_of(record: RankRecord) -> Id:
    """Return what a numbered rank is known by in the session."""
    assert record.rank is not None
    return record.group, record.rank


@dataclass
class RankRegistry:
    """The ranks that are there, by who names them (`owner`: a word of the command line)."""

    _present: dict[Id, tuple[Hashable, RankRecord]] = field(default_factory=dict)

    def enter(self, owner: Hashable, records: Sequence[RankRecord]) -> list[RankRecord]:
        """Write down numbered ranks, as `number` has found them to be without duplicates."""
        return self.update(owner, records)[0]

    def update(
        self, owner: Hashable, records: Iterable[RankRecord]
    ) -> tuple[list[RankRecord], list[str]]:
        """These are all of an owner's ranks now: number them, and say who has no place.

        A rank that gives no number keeps the one that its address had, or takes the lowest that
        nobody has, which is a missing rank's own where another has come in its place.
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
        return [f"{name} is there twice: {where}; the second is left out"]
