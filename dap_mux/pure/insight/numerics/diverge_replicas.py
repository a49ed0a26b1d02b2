"""Which parameters ranks should keep equal, by what the ranks do with them.

DDP's groups, gradients that come out the same, values that one has broadcast, layers that compute
the same from the same: of those. What is sharded, or never exchanged, differs by design.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from dap_mux.pure.insight.numerics.diverge_trace import (
    CARRIES,
    ZERO,
    Call,
    Op,
    RankTrace,
    Step,
)

EXPERT: Final = re.compile(r"(?:^|\.)experts?\d*(?:\.|$)")
"""In the names of parameters that each rank has its own of."""
LOOKED_AT: Final = 8
"""Updates that are asked whether a gradient is exchanged."""
ROUTES: Final = frozenset({"all_to_all", "all_to_all_single", "send", "recv"})
"""Calls by which ranks that have parameters of their own work together."""


class Replicas:
    """Which ranks should have equal parameters, by name.

    `goes_on`: these ranks still run, so that parameters may be averaged later.
    """

    def __init__(self, traces: Sequence[RankTrace], *, goes_on: bool = False) -> None:
        self.goes_on = goes_on
        self.by_rank = by_rank = {trace.rank: trace for trace in traces}
        self._routes = {
            rank
            for rank, trace in by_rank.items()
            if any(call.name in ROUTES for call in trace.calls())
        }
        self._uses = {rank: _uses_of(trace) for rank, trace in by_rank.items()}
        self.names = sorted({name for trace in by_rank.values() for name in trace.updates})
        self._plain = {
            rank: {name.partition("@")[0] for name in trace.updates}
            for rank, trace in by_rank.items()
        }
        self._exchanged = {
            rank: {name: self._exchange(trace, name) for name in self.names}
            for rank, trace in by_rank.items()
        }
        self._sure = {name: _joined(self._pairs(name)) for name in self.names}
        self._all = {
            name: _joined([*self._pairs(name), *self._likely(name)]) for name in self.names
        }

    @property
    def count(self) -> int:
        """How many parameters at least two ranks should keep equal."""
        return sum(map(bool, self._all.values()))

    def of(self, name: str) -> list[list[int]]:
        """Return the sets of ranks that should have the same values."""
        return [sorted(each) for each in self._all[name]]

    def exchanged_beside(self, name: str, rank: int, at: int) -> str:
        """Return where gradients of other parameters were exchanged, last."""
        trace = self.by_rank[rank]
        for update in reversed(trace.updates[name][: at + 1]):
            for other in update.step.gradients:
                found = trace.exchange(update, other) if self._exchanged[rank][other] else None
                if found is not None:
                    return trace.lines[found].user_place  # type: ignore[union-attr]
        return ""

    def left_out(self) -> Iterator[tuple[str, int, int]]:
        """Yield parameters that one rank updates and another does not, which exchanges it."""
        for name in self.names:
            having = self._having(name)
            plain = name.partition("@")[0]
            for rank in {*self.by_rank} - {*having}:
                if plain in self._plain[rank]:
                    continue  # it has another shard
                beside = self._beside(having[0], rank)
                if beside is not None and rank in (self._exchanged[having[0]][name] or ()):
                    yield name, having[0], rank

    def not_sent(self) -> Iterator[tuple[str, int, str]]:
        """Yield parameters that one rank alone updates and keeps, where others' are sent on."""
        sent: dict[str, str] = {}
        alone: dict[str, int] = {}
        for name in self.names:
            having = self._having(name)
            if len(having) == 1:
                alone[name] = having[0]
                sent[name] = self._sent_at(self.by_rank[having[0]], name)
        beside = next(filter(None, sent.values()), "")
        if beside:
            yield from ((name, rank, beside) for name, rank in alone.items() if not sent[name])

    @staticmethod
    def _sent_at(trace: RankTrace, name: str) -> str:
        """Return where a parameter goes to others, right after an update."""
        for update in trace.updates[name]:
            value = update.step.after.get(name, "")
            for call in trace.calls(update.at):
                if value in call.inputs:
                    return call.place
        return ""

    def _beside(self, one: int, other: int) -> str | None:
        """Return a parameter that two ranks keep equal for certain."""
        return next(
            (
                name
                for name, sets in self._sure.items()
                if any({one, other} <= each for each in sets)
            ),
            None,
        )

    def _exchange(self, trace: RankTrace, name: str) -> set[int] | None:
        """Return the ranks that a parameter's gradients are exchanged with, None for none."""
        updates = trace.updates.get(name, [])
        for update in updates[:1]:
            if update.step.groups.get(name):
                return {*trace.groups.get(update.step.groups[name], self.by_rank)}
        for update in updates[:LOOKED_AT]:
            at = trace.exchange(update, name)
            line = trace.lines[at] if at is not None else None
            if isinstance(line, Call):
                return {*trace.groups.get(line.group, self.by_rank)}
        return None

    def _pairs(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield pairs of ranks in DDP's group, or whose gradients have come out the same."""
        groups: dict[object, list[int]] = defaultdict(list)
        for rank in self._having(name):
            for at, update in enumerate(self.by_rank[rank].updates[name]):
                if group := update.step.groups.get(name):
                    groups[group].append(rank)
                gradient = update.step.gradients.get(name, "")
                if gradient not in ("", ZERO):
                    groups[at, gradient].append(rank)
        yield from ((ranks[0], other) for ranks in groups.values() for other in ranks[1:])

    def _likely(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield pairs that begin equal, and would stay so but for something left out."""
        equal: dict[str, list[int]] = defaultdict(list)
        for rank in self._having(name):
            equal[self._first(name, rank).before.get(name, "")].append(rank)
        rules = (self._is_left_out, self._is_sent, self._is_island, self._is_exchanged)
        for ranks in equal.values():
            for other in ranks[1:]:
                pair = ranks[0], other
                if any({*pair} <= each for each in self._sure[name]):
                    continue
                if self.is_used_equally(name, *pair) or (
                    self._begins_equal(name, *pair) and any(rule(name, *pair) for rule in rules)
                ):
                    yield pair

    def _having(self, name: str) -> list[int]:
        """Return the ranks that update a parameter."""
        return [rank for rank, trace in self.by_rank.items() if trace.updates.get(name)]

    def _first(self, name: str, rank: int) -> Step:
        return self.by_rank[rank].updates[name][0].step

    def _begins_equal(self, name: str, one: int, other: int) -> bool:
        """Whether it is equal at first, and not only for all its elements being 0 or 1."""
        steps = [self._first(name, rank) for rank in (one, other)]
        if len({step.before.get(name, "") for step in steps} - {""}) != 1:
            return False
        if name not in steps[0].constant:
            return True
        prefix = name.rpartition(".")[0]
        beside = [
            each
            for each in steps[0].before
            if each.rpartition(".")[0] == prefix and each not in steps[0].constant
        ]
        return all(steps[0].before[each] == steps[1].before.get(each) for each in beside)

    def _is_left_out(self, name: str, one: int, other: int) -> bool:
        """Whether others of its optimizer are exchanged between these ranks."""
        ignored = self._first(name, one).groups.get(name) == ""
        if ignored or EXPERT.search(name) or {one, other} & self._routes:
            return False
        return any(
            each != name
            and other in (self._exchanged[one].get(each) or ())
            and any({one, other} <= ranks for ranks in self._sure[each])
            for each in self._first(name, one).after
        )

    def _is_exchanged(self, name: str, one: int, other: int) -> bool:
        """Whether its own gradient is exchanged between these ranks, whatever becomes of it."""
        partners = [self._exchanged[rank][name] or () for rank in (one, other)]
        return other in partners[0] and one in partners[1]

    def _is_sent(self, name: str, one: int, other: int) -> bool:
        """Whether a call has made it equal, and no later one takes parameters to average them."""
        later = self.by_rank[one].updates[name][0].at
        trace = self.by_rank[one]
        averages = self.goes_on or any(map(_is_data, trace.calls(later)))
        if averages and not any(self._exchanged[one].values()):
            return False
        return all(self._was_sent(self.by_rank[rank], name) for rank in (one, other))

    def _was_sent(self, trace: RankTrace, name: str) -> bool:
        first = trace.updates[name][0]
        value = first.step.before.get(name, "")
        if not any(value in call.outputs for call in trace.calls(0, first.at)):
            return False
        later = {update.step.after.get(name) for update in trace.updates[name]}
        return not any(later & {*call.inputs} for call in trace.calls(first.at))

    def _is_island(self, name: str, one: int, other: int) -> bool:
        """Whether both exchange its gradient, and no data goes between them in any way.

        Ranks of tensor or pipeline parallelism send each other activations.
        """
        if None in (self._exchanged[one][name], self._exchanged[other][name]):
            return False
        return not any({one, other} <= each for each in self._islands)

    @cached_property
    def _islands(self) -> list[set[int]]:
        """The parts of the job between which more than single numbers are sent."""
        return _joined(
            (rank, other)
            for rank, trace in self.by_rank.items()
            for name in {call.group for call in trace.calls() if _is_data(call)}
            for other in trace.groups.get(name, ())
        )

    def is_used_equally(self, name: str, one: int, other: int) -> bool:
        """Whether a layer makes the same of it and of the same activations in both ranks.

        So it is with what tensor parallelism does not shard.
        """
        mine, others = (self._uses[rank].get(name) for rank in (one, other))
        return mine is not None and others is not None and mine == others


def _is_data(call: Call) -> bool:
    return bool(call.inputs) and bool(call.shape) and call.shape != [1]


def _uses_of(trace: RankTrace) -> dict[str, tuple[list[str], list[str]]]:
    """Return inputs and outputs of the first operation that takes a parameter with other values."""
    names: dict[str, str] = {}
    for updates in trace.updates.values():
        names.update({value: name for name, value in updates[0].step.before.items() if value})
    parameters = {**names}
    uses: dict[str, tuple[list[str], list[str]]] = {}
    until = min((updates[0].at for updates in trace.updates.values()), default=0)
    for line in trace.lines[:until]:
        if not isinstance(line, Op) or line.forward:
            continue
        known = [names[each] for each in line.uses if each in names]
        if len(known) == len(line.uses) == 1 and line.plain in CARRIES:
            names.update(dict.fromkeys(line.outputs, known[0]))
        elif known and len({*known}) < len({*line.uses}):
            for name in known:
                uses.setdefault(name, (line.uses, line.outputs))
    shared = {name for name, count in Counter(parameters.values()).items() if count > 1}
    return {name: each for name, each in uses.items() if name not in shared}


def _joined(pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    sets: list[set[int]] = []
    for pair in pairs:
        joined = {*pair}.union(*(each for each in sets if each & {*pair}))
        sets = [each for each in sets if not each & joined] + [joined]
    return sets
