"""Where replicas part: the first parameter that differs, and what has made it differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Literal

from msgspec import Struct, field

from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.numerics.diverge_replicas import Replicas
from dap_mux.pure.insight.numerics.diverge_trace import Call, Op, RankTrace, Step
from dap_mux.pure.insight.numerics.diverge_walk import Root, roots

Kind = Literal[
    "start",
    "update",
    "gradient",
    "not-exchanged",
    "other-call",
    "steps",
    "left-out",
    "not-sent",
    "between",
    "equal",
]
LOCATE: Final = "run it again with --locate, which names the line"


class Divergence(Struct, kw_only=True):
    """The first difference: `ranks` have it, `others` are what they are compared with.

    `step` counts from 0; None: before the first. `place`: `path:line function`. `also`: another
    place that has to do with it. `next`: what helps to know more.
    """

    kind: Kind
    sentence: str
    step: int | None
    ranks: list[int]
    others: list[int]
    tensor: str
    place: str
    also: str = ""
    evidence: list[str] = field(default_factory=list)
    next: str = ""


def first_divergence(replicas: Replicas) -> Divergence | None:
    """Return where replicas part first; None where they stay equal."""
    by_rank = replicas.by_rank
    found = [
        (at, name, ranks)
        for name in replicas.names
        for ranks in replicas.of(name)
        if (at := _first(by_rank, name, ranks)) is not None
    ]
    first = min((at for at, _, _ in found), default=1)
    left_out = [_not_updated(by_rank, *each) for each in replicas.left_out()]
    left_out += [_not_sent(by_rank, *each) for each in replicas.not_sent()]
    if left_out and first > 0:
        return left_out[0]
    judged = [
        _Case(replicas, name, ranks, at).judged(at) for at, name, ranks in found if at == first
    ]
    parted = min(judged, key=lambda each: each[0])[1] if judged else None
    said = _said_to_be_equal(by_rank, refuses=not replicas.goes_on)
    if said is not None and (parted is None or (parted.step or 0) > (said.step or 0)):
        return said
    return parted


def _said_to_be_equal(by_rank: dict[int, RankTrace], *, refuses: bool) -> Divergence | None:
    """Return where the values of an expression differ first that its user says are equal.

    Raises DapMuxError for one that has no value in any rank, if it `refuses` that.
    """
    steps: dict[int, dict[int, Step]] = defaultdict(dict)
    failed: dict[str, tuple[int, Step]] = {}
    for rank, trace in by_rank.items():
        for line in (trace.lines[at] for at in trace.steps):
            assert isinstance(line, Step)
            steps[line.number][rank] = line
            failed = {**dict.fromkeys(line.failed, (rank, line)), **failed}
    known = {text for each in steps.values() for step in each.values() for text in step.equal}
    for text in sorted(failed.keys() - known) if refuses else ():
        rank, step = failed[text]
        raise DapMuxError(f"--equal {text}: {step.failed[text]} (rank {rank}, at {step.place})")
    for number, there in sorted(steps.items()) if known else ():
        for text in sorted(known):
            values = {
                rank: step.equal.get(text) or step.failed.get(text, "")
                for rank, step in there.items()
            }
            usual, others = _parted(values)
            if others:
                return Divergence(
                    kind="equal",
                    sentence=f"`{text}` differs after a step, and is said to be equal",
                    step=number, ranks=others, others=usual, tensor=text,
                    place=there[others[0]].place,
                    evidence=[
                        f"rank {rank}: {step.failed[text]}"
                        for rank, step in there.items() if text in step.failed
                    ],
                    next=f"`compare {text}` where ranks stop at that line shows the values",
                )  # fmt: skip
    return None


def _not_updated(by_rank: dict[int, RankTrace], name: str, one: int, other: int) -> Divergence:
    step = by_rank[one].updates[name][0].step
    there = next(each for each in by_rank[other].lines if isinstance(each, Step))
    return Divergence(
        kind="left-out",
        sentence=f"{name} is not among the parameters of its optimizer, as it is elsewhere",
        step=step.number, ranks=[other], others=[one], tensor=name, place=there.place,
    )  # fmt: skip


def _not_sent(by_rank: dict[int, RankTrace], name: str, rank: int, beside: str) -> Divergence:
    step = by_rank[rank].updates[name][0].step
    others = [each for each in by_rank if each != rank]
    return Divergence(
        kind="not-sent",
        sentence=f"rank {rank} alone updates {name}, and does not send it to the others",
        step=step.number, ranks=[rank], others=others, tensor=name, place=beside,
        also=step.place, evidence=[f"other parameters are sent at {beside}"],
    )  # fmt: skip


def _values(trace: RankTrace, name: str, at: int) -> str | None:
    """The hash at a moment: 0 is before the first update, 1 after it, 2 before the second."""
    updates = trace.updates.get(name, [])
    if at // 2 >= len(updates):
        return None
    step = updates[at // 2].step
    return (step.after if at % 2 else step.before).get(name)


def _first(by_rank: dict[int, RankTrace], name: str, ranks: Sequence[int]) -> int | None:
    """Return the first moment at which these ranks differ."""
    most = max(len(by_rank[rank].updates[name]) for rank in ranks)
    for at in range(2 * most):
        values = {_values(by_rank[rank], name, at) for rank in ranks} - {None, ""}
        if len(values) > 1:
            return at
    return None


def _parted(values: Mapping[int, str | None]) -> tuple[list[int], list[int]]:
    """Return the ranks of the majority, and the others; rank 0's where none has it."""
    known = {rank: value for rank, value in values.items() if value}
    counts = Counter(known.values())
    usual = max(counts, default="", key=lambda value: (counts[value], value == known[min(known)]))
    return (
        [rank for rank in known if known[rank] == usual],
        [rank for rank in known if known[rank] != usual],
    )


class _Case:
    """One parameter in two ranks, one of the majority and one that differs from it."""

    def __init__(self, sets: Replicas, name: str, ranks: Sequence[int], at: int) -> None:
        self.sets, self.name, self.at = sets, name, at // 2
        values = {rank: _values(sets.by_rank[rank], name, at) for rank in ranks}
        self.usual, self.other = _parted(values)
        self.a, self.b = sets.by_rank[self.usual[0]], sets.by_rank[self.other[0]]
        self.mine, self.others = (each.updates[name][at // 2] for each in (self.a, self.b))

    def judged(self, at: int) -> tuple[int, Divergence]:
        """Return what has made these ranks differ, and the line it begins at, to order by."""
        if at % 2 == 0:
            return self.between() if at else self.start()
        skipped = self.skipped()
        if skipped is not None:
            return skipped
        one, another = (each.step.gradients.get(self.name) for each in (self.mine, self.others))
        return self.update() if one == another else self.gradient()

    def start(self) -> tuple[int, Divergence]:
        """The parameters are not equal before the first step."""
        found = self._roots("before")
        call = _first_of(found, "group", "call")
        text = f"{self.name} differs before its first step, though its gradients are kept equal"
        if call is not None:
            return self._said("start", text, "", call, step=None)
        sent = self._sent_beside()
        order, divergence = self._entered(
            "start", text, self.mine.step.place, found, self.mine.step.number or None
        )
        if sent:
            divergence.place, divergence.also = sent, divergence.place
            divergence.evidence.append(f"other parameters were sent to all ranks at {sent}")
        return order, divergence

    def between(self) -> tuple[int, Divergence]:
        """It was changed since the last step, by something else than the optimizer."""
        found = self._roots("before")
        before = self.a.updates[self.name][self.at - 1].step
        text = f"{self.name} differs by what is done with it between two steps"
        return self._entered("between", text, before.place, found, before.number)

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
        found = self._roots("after")
        text = f"{self.name} differs after a step, though its gradient was equal"
        return self._entered("update", text, self.mine.step.place, found, self.mine.step.number)

    def gradient(self) -> tuple[int, Divergence]:
        """Its gradient is not equal: it has not been exchanged, or not with these ranks."""
        found = self._roots("gradients")
        call = _first_of(found, "group", "call")
        late = [root for root in found if self._is_after_backward(root)]
        chance = [root for root in found if root.what == "random" and self._uses(root)]
        if self.sets.is_used_equally(self.name, self.a.rank, self.b.rank):
            chance += [root for root in reversed(found) if self._mixes_chance(root)]
        mine, others = (
            self.a.exchange(self.mine, self.name),
            self.b.exchange(self.others, self.name),
        )
        exchanges = [mine, others]
        if call is None and self._apart(mine, others):
            call = Root("group", mine, others)
        if call is not None:
            text = f"{self.name} got its gradient from calls that are not the same"
            return self._said("other-call", text, "", call)
        if late and None in exchanges:
            text = f"the gradient of {self.name} differs by what is done with it"
            return self._entered("gradient", text, "", late, self.mine.step.number)
        if chance and None in exchanges:
            text = f"the gradient of {self.name} differs by chance, in what was equal"
            return self._said("gradient", text, "", chance[0])
        if None not in exchanges:
            text = f"the gradient of {self.name} differs, though it has been exchanged"
            line = self.a.lines[exchanges[0] or 0]
            later = [
                self._mixed(root, exchanges) for root in found if root.at > (exchanges[0] or 0)
            ]
            place = line.place if isinstance(line, Call) else ""
            return self._entered("gradient", text, place, later, self.mine.step.number)
        return self._not_exchanged(exchanges, found)

    def _entered(
        self, kind: Kind, text: str, place: str, found: list[Root], step: int | None
    ) -> tuple[int, Divergence]:
        """Name the line that computes otherwise, or where a rank's own value came in."""
        own = [root for root in found if root.what in ("own", "extra", "paths")]
        own += [root for root in found if root.what == "random" and self._uses(root)]
        data, entry = _first_of(found, "random", "source"), _first_of(found, "entry")
        first = min(own, key=lambda root: root.at, default=None)
        order, divergence = self._said(kind, text, place, first or entry or data, step)
        other = entry if own else data
        if other is not None:
            divergence.also = self._place(other)
        return order, divergence

    def _apart(self, at: int | None, other: int | None) -> bool:
        """Whether the calls that exchange are those of two groups."""
        sides = ((self.a, at), (self.b, other))
        lines = [trace.lines[each] for trace, each in sides if each is not None]
        return len({line.group for line in lines if isinstance(line, Call)}) > 1

    @staticmethod
    def _mixed(root: Root, exchanges: list[int | None]) -> Root:
        """Return where a rank's own value meets those received, if a root has one of each."""
        made, (one, other) = (root.a or 0, root.b or 0), exchanges
        if root.used is None or (made[0] > (one or 0)) == (made[1] > (other or 0)):
            return root
        return Root("paths", root.used[0], root.used[1])

    def _not_exchanged(
        self, exchanges: list[int | None], found: list[Root]
    ) -> tuple[int, Divergence]:
        beside = self.sets.exchanged_beside(self.name, self.a.rank, self.at)
        sharded = [root for root in found if root.what == "parameter"]
        made = (
            self._place(max(sharded, key=lambda root: root.at))
            if sharded
            else self._maker_of_gradient()
        )
        text = f"the gradient of {self.name} differs: it was not exchanged in this step"
        evidence = [f"gradients of others were exchanged at {beside}"] if beside else []
        evidence += [f"the gradient was computed at {made}"] if made else []
        place = beside or made or self.mine.step.place
        own = _first_of(found, "extra", "paths")
        order, divergence = self._said("not-exchanged", text, place)
        divergence.evidence, divergence.also = evidence, made if beside else ""
        if own is not None and not beside:
            divergence.also = self._place(own)
        return order, divergence

    def _maker_of_gradient(self) -> str:
        at = self.a.maker(self.mine.step.gradients.get(self.name, ""), self.mine.at)
        line = self.a.lines[at] if at is not None else None
        return line.user_place if isinstance(line, Op) else ""

    def _uses(self, root: Root) -> bool:
        """Whether an operation of chance was given values, and not only a shape."""
        line = self.a.lines[root.a or 0]
        return isinstance(line, Op) and bool(line.uses)

    def _mixes_chance(self, root: Root) -> bool:
        """Whether a rank's own chance meets what is equal."""
        mine, others = (trace.lines[at or 0] for trace, at in ((self.a, root.a), (self.b, root.b)))
        if root.what != "entry" or not (isinstance(mine, Op) and isinstance(others, Op)):
            return False
        pairs = zip(mine.uses, others.uses, strict=True)
        return all(one == other or self.a.is_chance(one, root.at) for one, other in pairs)

    def _is_after_backward(self, root: Root) -> bool:
        """Whether it computes with a gradient once the backward pass of the step is over."""
        last = self._last_of_backward
        return root.what in ("entry", "own") and last is not None and last < (root.a or 0)

    @cached_property
    def _last_of_backward(self) -> int | None:
        window = range(self.mine.at, self.mine.since, -1)
        return next((at for at in window if getattr(self.a.lines[at], "forward", "")), None)

    def _sent_beside(self) -> str:
        values = {*self.mine.step.before.values()} - {self.mine.step.before[self.name]}
        calls = self.a.calls(0, self.mine.at)
        return next((call.place for call in calls if values & {*call.outputs}), "")

    def _roots(self, what: str) -> list[Root]:
        if not self.a.has_operations:
            return []
        mine, others = (
            getattr(update.step, what).get(self.name, "") for update in (self.mine, self.others)
        )
        until = self.mine.at, self.others.at
        return roots(self.a, self.b, (mine, others), until, self.name)

    def _place(self, root: Root) -> str:
        """Where the user's line is: of the rank that differs, where both have one."""
        sides = [(self.b, root.b), (self.a, root.a)]
        if root.what == "paths":  # what was done last is what the other has not done
            sides.sort(key=lambda side: -side[0].step_of(side[1] or 0))
        for trace, at in sides:
            line = trace.lines[at] if at is not None else None
            if isinstance(line, Op | Call | Step) and line.user_place:
                return line.user_place
        return self.mine.step.place

    def _said(
        self,
        kind: Kind,
        text: str,
        place: str,
        root: Root | None = None,
        step: int | None = -1,
    ) -> tuple[int, Divergence]:
        number = self.mine.step.number if step == -1 else step
        divergence = self._divergence(kind, text, place, number)
        order = self.mine.at
        if root is not None:
            divergence.place, divergence.evidence = self._place(root), [*self._evidence(root)]
            order = root.at
        if not self.a.has_operations:
            divergence.next = LOCATE
        return order, divergence

    def _divergence(
        self,
        kind: Kind,
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


def _first_of(found: Sequence[Root], *what: str) -> Root | None:
    return next((root for root in found if root.what in what), None)


def _is_less(one: dict[str, int], other: dict[str, int]) -> bool:
    return any(number < other.get(name, number) for name, number in one.items())


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
