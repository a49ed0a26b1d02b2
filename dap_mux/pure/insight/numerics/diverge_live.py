"""Where the replicas of a job part while it runs, by what its ranks tell after each step.

Digests say that something differs; whether it should be equal is decided by the ranks' last steps,
as `diverge` does it for a whole trace.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct, field

from dap_mux.pure.insight.numerics.diverge import Divergence, first_divergence
from dap_mux.pure.insight.numerics.diverge_replicas import LOOKED_AT, Replicas
from dap_mux.pure.insight.numerics.diverge_trace import Line, RankTrace, Step
from dap_mux.pure.protocol.rank_messages import StepTold

Order: TypeAlias = tuple[int, int]
"""Identifies a step; the same in all ranks."""
ALL_ASKED: Final = 16
"""Of more ranks than these, only some of those that are alike are asked for their hashes."""
MOST_ASKED: Final = 32
USUAL_ASKED: Final = 3
"""So many of the largest part, so that it is seen to be the larger one."""
KEPT: Final = 64
APART: Final = "-"
"""The set of the parameters that a rank has of its own."""


class Suspect(Struct, frozen=True):
    """A step after which digests of ranks differ that might have to be equal, for these sets."""

    order: Order
    told: Mapping[int, StepTold]
    sets: frozenset[str]

    def alike(self) -> list[list[int]]:
        """Return the ranks with the same digests, most first."""
        parts: dict[str, list[int]] = defaultdict(list)
        for rank, said in sorted(self.told.items()):
            parts[repr(sorted(said.digests.items()))].append(rank)
        return sorted(parts.values(), key=lambda ranks: (-len(ranks), ranks))

    def asked(self) -> list[int]:
        """Return the ranks whose hashes are wanted."""
        if len(self.told) <= ALL_ASKED:
            return sorted(self.told)
        usual, *others = self.alike()
        return sorted([*usual[:USUAL_ASKED], *(each[0] for each in others[: MOST_ASKED - 1])])

    def with_twins(self, ranks: Collection[int]) -> list[int]:
        """Return these ranks and those with the same digests."""
        return sorted(rank for each in self.alike() if {*each} & {*ranks} for rank in each)


class LiveReplicas(Struct, eq=False):
    """The steps that the ranks of one job have told, each `due` once all have told it.

    `sets`: by rank, the parameters whose digests are told apart from others: what other ranks must
    have, too. Empty as long as one digest of all is enough.
    """

    sets: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    _told: dict[Order, dict[int, StepTold]] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)
    _parted: set[str] = field(default_factory=set)
    _numbers: dict[tuple[int, ...], str] = field(default_factory=dict)
    _in_vain: int = 0

    def add(self, rank: int, said: StepTold) -> bool:
        """Note what a rank has after a step; return whether one may be due."""
        self._seen.add(rank)
        told = self._told.setdefault(said.order, {})
        told[rank] = said
        if len(self._told) > KEPT:  # a rank has stayed behind, or makes no steps any more
            del self._told[next(iter(self._told))]
        return len(told) == 1 or len(told) >= len(self._seen)

    def due(self, live: Collection[int]) -> Suspect | None:
        """Let go of the steps that all live ranks have told, up to one that differs anew."""
        self._seen &= {*live}
        while (order := self._whole({*live})) is not None:
            told = self._told.pop(order)
            digests = {each for said in told.values() for each in said.digests.items()}
            counts = Counter(key for key, _ in digests)
            parted = {key for key, count in counts.items() if count > 1}
            self._parted &= parted | (self._parted - {*counts})
            if parted - self._parted:
                return Suspect(order, told, frozenset(parted - self._parted))
        return None

    def _whole(self, live: set[int]) -> Order | None:
        """Return a step that all live ranks have told; at first nobody knows who will."""
        for order, told in self._told.items():
            if live <= told.keys() | (live - self._seen if len(self._told) > 2 else set()):
                return order
        return None

    def judge(self, suspect: Suspect, lines: Mapping[int, list[Line]]) -> Divergence | None:
        """Return what has parted, by ranks' last steps; None where that is as it should be."""
        traces = [RankTrace(rank, [*each]) for rank, each in _together(lines, suspect.order)]
        replicas = Replicas(traces, goes_on=True)
        found = first_divergence(replicas)
        if found is not None:
            found.ranks = suspect.with_twins(found.ranks)
            found.others = suspect.with_twins(found.others)
        if found is not None or "" not in suspect.sets:
            self._parted |= suspect.sets
            return found
        self._in_vain += 1
        if self._in_vain >= LOOKED_AT:
            self._divide(suspect, replicas)
        return None

    def _divide(self, suspect: Suspect, replicas: Replicas) -> None:
        """Have ranks tell digests of what they should have in common, and of nothing else."""
        for name in replicas.names:
            apart = {rank for rank, trace in replicas.by_rank.items() if trace.updates.get(name)}
            for ranks in replicas.of(name):
                key = self._numbers.setdefault((*ranks,), str(1 + len(self._numbers)))
                for rank in ranks:
                    self._put(rank, key, name)
                apart -= {*ranks}
            for rank in apart:
                self._put(rank, APART, name)
        for alike in suspect.alike():
            known = [rank for rank in alike if rank in replicas.by_rank]
            for rank in {*alike} - {*known}:
                self.sets[rank] = self.sets[known[0]] if known else {}

    def _put(self, rank: int, key: str, name: str) -> None:
        names = self.sets.setdefault(rank, {}).setdefault(key, [])
        if name not in names:
            names.append(name)

    def others(self, rank: int) -> str:
        """Return the set of the parameters that `sets` does not name."""
        return APART if self.sets.get(rank) == {} else ""


def _together(
    lines: Mapping[int, list[Line]], until: Order
) -> Iterator[tuple[int, Iterator[Line]]]:
    """Yield the lines of each rank, with the steps that all of them know, and no later ones."""
    orders = [{line.order for line in each if isinstance(line, Step)} for each in lines.values()]
    common = {order for order in set.intersection(*orders) if order <= until} if orders else set()
    for rank, each in lines.items():
        yield rank, _of_steps(each, common, until)


def _of_steps(lines: list[Line], orders: set[Order], until: Order) -> Iterator[Line]:
    groups: dict[str, str] = {}  # DDP's, which only the first step of an optimizer has
    for line in lines:
        if not isinstance(line, Step):
            yield line
            continue
        groups.update(line.groups)
        if line.order in orders:
            line.groups = {name: groups[name] for name in line.after if name in groups}
            yield line
        if line.order == until:
            return
