"""Where replicas part: parameters that ranks should keep equal, and the first that differs.

Which ones should be equal follows from what the ranks do: DDP's groups, gradients that come out the
same, values that one has broadcast. What is sharded, or never exchanged, differs by design.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final, Literal

from msgspec import Struct, field

from dap_mux.pure.insight.numerics.diverge_trace import (
    ZERO,
    Call,
    Op,
    RankTrace,
    Step,
)
from dap_mux.pure.insight.numerics.diverge_walk import Root, roots

ROUTES: Final = frozenset({"all_to_all", "all_to_all_single"})
LOCATE: Final = "run it again with --locate, which names the line"


class Divergence(Struct, kw_only=True):
    """The first difference: `ranks` have it, `others` are what they are compared with.

    `step` counts from 0; None: before the first. `place`: `path:line function`. `also`: another
    place that has to do with it. `next`: what helps to know more.
    """

    kind: Literal["start", "update", "gradient", "not-exchanged", "other-call", "steps"]
    sentence: str
    step: int | None
    ranks: list[int]
    others: list[int]
    tensor: str
    place: str
    also: str = ""
    evidence: list[str] = field(default_factory=list)
    next: str = ""


def _values(trace: RankTrace, name: str, at: int) -> str | None:
    """The hash after an update; of -1 before the first."""
    updates = trace.updates.get(name, [])
    if at < 0:
        return updates[0].step.before.get(name) if updates else None
    return updates[at].step.after.get(name) if at < len(updates) else None


def _first(by_rank: dict[int, RankTrace], name: str, ranks: Sequence[int]) -> int | None:
    """Return the first update after which these ranks differ, -1: before the first."""
    most = max(len(by_rank[rank].updates[name]) for rank in ranks)
    for at in range(-1, most):
        values = {_values(by_rank[rank], name, at) for rank in ranks} - {None, ""}
        if len(values) > 1:
            return at
    return None


class Replicas:
    """Which ranks should have equal parameters, by name, and where they do not."""

    def __init__(self, traces: Sequence[RankTrace]) -> None:
        self._by_rank = by_rank = {trace.rank: trace for trace in traces}
        self._routes = {
            rank
            for rank, trace in by_rank.items()
            if any(isinstance(line, Call) and line.name in ROUTES for line in trace.lines)
        }
        names = {name for trace in by_rank.values() for name in trace.updates}
        self._exchanged = {
            rank: {name: self._has_exchanged(trace, name) for name in names}
            for rank, trace in by_rank.items()
        }
        self._sure = {name: {*self._pairs(name)} for name in names}
        self._all = {name: self._sure[name] | {*self._likely(name)} for name in names}

    @property
    def count(self) -> int:
        """How many parameters at least two ranks should keep equal."""
        return sum(bool(pairs) for pairs in self._all.values())

    def first_divergence(self) -> Divergence | None:
        """Return where replicas part first; None where they stay equal."""
        found = [
            (at, name, ranks)
            for name in sorted(self._all)
            for ranks in self.of(name)
            if (at := _first(self._by_rank, name, ranks)) is not None
        ]
        first = min((at for at, _, _ in found), default=None)
        judged = [
            _judged(self._by_rank, name, ranks, at, self)
            for at, name, ranks in found
            if at == first
        ]
        return min(judged, key=lambda each: each[0])[1] if judged else None

    def of(self, name: str) -> list[list[int]]:
        """Return the sets of ranks that should have the same values."""
        return [sorted(each) for each in _joined(self._all[name])]

    def exchanged_beside(self, name: str, rank: int, at: int) -> str:
        """Return where gradients of other parameters were exchanged, last."""
        trace = self._by_rank[rank]
        for update in reversed(trace.updates[name][: at + 1]):
            for other in update.step.gradients:
                found = trace.exchange(update, other) if self._exchanged[rank][other] else None
                if found is not None:
                    line = trace.lines[found]
                    return line.place if isinstance(line, Call) else ""
        return ""

    def _has_exchanged(self, trace: RankTrace, name: str) -> bool:
        updates = trace.updates.get(name, [])
        if any(name in update.step.groups for update in updates[:1]):
            return True
        return any(trace.exchange(update, name) is not None for update in updates[:8])

    def _pairs(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield pairs of ranks in DDP's group, or whose gradients have come out the same."""
        having = [rank for rank, trace in self._by_rank.items() if trace.updates.get(name)]
        groups: dict[object, list[int]] = defaultdict(list)
        for rank in having:
            for at, update in enumerate(self._by_rank[rank].updates[name]):
                if group := update.step.groups.get(name):
                    groups[group].append(rank)
                gradient = update.step.gradients.get(name, "")
                if gradient not in ("", ZERO):
                    groups[at, gradient].append(rank)
        yield from ((ranks[0], other) for ranks in groups.values() for other in ranks[1:])

    def _likely(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield pairs that begin equal, of which only others' gradients are exchanged."""
        having = [rank for rank, trace in self._by_rank.items() if trace.updates.get(name)]
        for one, other in combinations(having, 2):
            if self._begins_equal(name, one, other) and (
                self._is_left_out(name, one, other) or self._is_sent(name, one, other)
            ):
                yield one, other

    def _begins_equal(self, name: str, one: int, other: int) -> bool:
        steps = [self._by_rank[rank].updates[name][0].step for rank in (one, other)]
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
        return bool(beside) and all(
            steps[0].before[each] == steps[1].before.get(each) for each in beside
        )

    def _is_left_out(self, name: str, one: int, other: int) -> bool:
        if "expert" in name.lower() or {one, other} & self._routes:
            return False
        beside = self._by_rank[one].updates[name][0].step.after
        return any(
            each != name
            and self._exchanged[one].get(each, False)
            and self._exchanged[other].get(each, False)
            and any({one, other} <= {*ranks} for ranks in _joined(self._sure[each]))
            for each in beside
        )

    def _is_sent(self, name: str, one: int, other: int) -> bool:
        """Whether a broadcast has made it equal, and no later call takes it as it is then."""
        return all(self._was_sent(self._by_rank[rank], name) for rank in (one, other))

    def _was_sent(self, trace: RankTrace, name: str) -> bool:
        first = trace.updates[name][0]
        value = first.step.before.get(name, "")
        if not any(value in call.outputs for _, call in trace.calls(0, first.at)):
            return False
        later = {update.step.after.get(name) for update in trace.updates[name]}
        calls = [call for _, call in trace.calls(first.at, len(trace.lines))]
        return not any(later & {*call.inputs} for call in calls)


def _joined(pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    sets: list[set[int]] = []
    for pair in pairs:
        joined = {*pair}.union(*(each for each in sets if each & {*pair}))
        sets = [each for each in sets if not each & joined] + [joined]
    return sets


def _classes(
    by_rank: dict[int, RankTrace], name: str, ranks: Sequence[int], at: int
) -> tuple[list[int], list[int]]:
    """Return the ranks of the majority, and the others; rank 0's where none has it."""
    values = {rank: _values(by_rank[rank], name, at) for rank in ranks}
    known = {rank: value for rank, value in values.items() if value}
    counts = Counter(known.values())
    usual = max(counts, key=lambda value: (counts[value], value == known[min(known)]))
    return (
        [rank for rank in known if known[rank] == usual],
        [rank for rank in known if known[rank] != usual],
    )


def _judged(
    by_rank: dict[int, RankTrace], name: str, ranks: Sequence[int], at: int, sets: Replicas
) -> tuple[int, Divergence]:
    """Return what has made these ranks differ, and the line it begins at, to order by."""
    usual, other = _classes(by_rank, name, ranks, at)
    a, b = by_rank[usual[0]], by_rank[other[0]]
    case = _Case(a, b, name, at, usual, other, sets)
    if at < 0:
        return case.start()
    skipped = case.skipped()
    if skipped is not None:
        return skipped
    one, another = (trace.updates[name][at].step.gradients.get(name) for trace in (a, b))
    return case.update() if one == another else case.gradient()


class _Case:
    """One parameter in two ranks, one of the majority and one that differs from it."""

    def __init__(
        self,
        a: RankTrace,
        b: RankTrace,
        name: str,
        at: int,
        usual: list[int],
        other: list[int],
        sets: Replicas,
    ) -> None:
        self.a, self.b, self.name, self.at = a, b, name, at
        self.usual, self.other, self.sets = usual, other, sets
        self.mine, self.others = (trace.updates[name][max(at, 0)] for trace in (a, b))

    def start(self) -> tuple[int, Divergence]:
        """The parameters are not equal before the first step."""
        found = self._roots("before", (self.mine.since, self.others.since))
        sent = self._sent_beside()
        place = sent or (self._place(found[0]) if found else self.mine.step.place)
        return self._said(
            "start",
            f"{self.name} differs before the first step, though its gradients are kept equal",
            place,
            found[:1],
            [f"other parameters were sent to all ranks at {sent}"] if sent else [],
            step=None,
        )

    def skipped(self) -> tuple[int, Divergence] | None:
        """One of them has left a step out that the other has made."""
        updates = self.a.updates[self.name], self.b.updates[self.name]
        steps = [each.step for each in (self.mine, self.others)]
        if steps[0].calls == steps[1].calls:
            return None
        for who, later in ((self.other, updates[0]), (self.usual, updates[1])):
            step, another = steps if who is self.other else steps[::-1]
            after = [each.step.calls for each in later[self.at + 1 : self.at + 4]]
            if another.calls in after or (not after and _is_less(step.calls, another.calls)):
                text = f"{_ranks(who)} made no step where the others made one"
                return self.mine.at, self._divergence(
                    "steps", text, step.place, step.number, ranks=who
                )
        return None

    def update(self) -> tuple[int, Divergence]:
        """Gradients are equal: the update is not, or something else has written to it."""
        found = self._roots("after", (self.mine.at, self.others.at))
        text = f"{self.name} differs after a step, though its gradient was equal"
        return self._said("update", text, self.mine.step.place, found[:1], [])

    def gradient(self) -> tuple[int, Divergence]:
        """Its gradient is not equal: it has not been exchanged, or not with these ranks."""
        found = self._roots("gradients", (self.mine.at, self.others.at))
        calls = [root for root in found if root.what in ("group", "call")]
        exchanges = [
            trace.exchange(update, self.name)
            for trace, update in ((self.a, self.mine), (self.b, self.others))
        ]
        if calls:
            text = f"{self.name} got its gradient from calls that are not the same"
            return self._said("other-call", text, self._place(calls[0]), calls[:1], [])
        if None not in exchanges:
            text = f"the gradient of {self.name} differs, though it has been exchanged"
            line = self.a.lines[exchanges[0] or 0]
            later = [root for root in found if root.at > (exchanges[0] or 0)]
            place = line.place if isinstance(line, Call) else ""
            return self._said("gradient", text, place, later[:1], [])
        return self._not_exchanged(exchanges, found)

    def _not_exchanged(
        self, exchanges: list[int | None], found: list[Root]
    ) -> tuple[int, Divergence]:
        beside = self.sets.exchanged_beside(self.name, self.a.rank, self.at)
        made = self._maker_of_gradient()
        text = f"the gradient of {self.name} differs: it was not exchanged in this step"
        evidence = [f"gradients of others were exchanged at {beside}"] if beside else []
        evidence += [f"the gradient was computed at {made}"] if made else []
        place = beside or made or self.mine.step.place
        own = [root for root in found if root.what in ("extra", "paths")]
        order, divergence = self._said("not-exchanged", text, place, [], evidence)
        divergence.also = made if beside else ""
        if own and not beside:
            divergence.also = self._place(own[0])
        return order, divergence

    def _maker_of_gradient(self) -> str:
        at = self.a.maker(self.mine.step.gradients.get(self.name, ""), self.mine.at)
        line = self.a.lines[at] if at is not None else None
        return line.user_place if isinstance(line, Op) else ""

    def _sent_beside(self) -> str:
        values = {*self.mine.step.before.values()} - {self.mine.step.before[self.name]}
        calls = [call for _, call in self.a.calls(0, self.mine.at)]
        return next((call.place for call in calls if values & {*call.outputs}), "")

    def _roots(self, what: str, until: tuple[int, int]) -> list[Root]:
        values = [
            getattr(update.step, what).get(self.name, "") for update in (self.mine, self.others)
        ]
        if not self.a.has_operations:
            return []
        if what == "before":
            until = self.mine.at, self.others.at
        return roots(self.a, self.b, (values[0], values[1]), until)

    def _place(self, root: Root) -> str:
        """Where the user's line is: of the rank that differs, where both have one."""
        for trace, at in ((self.b, root.b), (self.a, root.a)):
            line = trace.lines[at] if at is not None else None
            if isinstance(line, Op | Call | Step) and line.user_place:
                return line.user_place
        return self.mine.step.place

    def _said(
        self,
        kind: Literal["start", "update", "gradient", "not-exchanged", "other-call", "steps"],
        text: str,
        place: str,
        found: Sequence[Root],
        evidence: list[str],
        step: int | None = -1,
    ) -> tuple[int, Divergence]:
        number = self.mine.step.number if step == -1 else step
        divergence = self._divergence(kind, text, place, number)
        divergence.evidence = evidence
        order = self.mine.at
        for root in found:
            divergence.place = self._place(root) if kind != "start" or not evidence else place
            divergence.evidence += [*self._evidence(root)]
            order = root.at
        if not self.a.has_operations:
            divergence.next = LOCATE
        return order, divergence

    def _divergence(
        self,
        kind: Literal["start", "update", "gradient", "not-exchanged", "other-call", "steps"],
        text: str,
        place: str,
        step: int | None,
        ranks: list[int] | None = None,
    ) -> Divergence:
        who = ranks or self.other
        rest = [rank for rank in (*self.usual, *self.other) if rank not in who]
        return Divergence(
            kind=kind, sentence=text, step=step, ranks=who, others=rest, tensor=self.name,
            place=place,
        )  # fmt: skip

    def _evidence(self, root: Root) -> Iterator[str]:
        for trace, at in ((self.a, root.a), (self.b, root.b)):
            if at is None:
                yield f"rank {trace.rank}: nothing of the kind"
                continue
            line = trace.lines[at]
            said = line.said if isinstance(line, Op | Call) else "the step"
            place = getattr(line, "place", "")
            uses = "uses a value from outside in " if root.what == "source" else ""
            yield f"rank {trace.rank}: {uses}{said} at {place}"


def _is_less(one: dict[str, int], other: dict[str, int]) -> bool:
    return any(number < other.get(name, number) for name, number in one.items())


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
