"""Where two runs of a program part: traces, aligned rank by rank, up to the first difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final

from msgspec import Struct, field

from dap_mux.pure.insight.numerics.diverge import LOCATE
from dap_mux.pure.insight.numerics.diverge_trace import VIEWS, Call, Head, Op, RankTrace, Step

WINDOW: Final = 400
"""Lines in which the runs are aligned again, once they make other calls."""
ENOUGH: Final = 3
"""Equal lines in a row that align them."""
Pair = tuple[int | None, int | None]
Order = tuple[int, bool, int]
"""The number of calls before, whether it is only what others have sent, and the line."""


class Parting(Struct, kw_only=True):
    """The first difference: `place` in the first run, `other` in the second, "" for none.

    `equal`: the last line with equal values before. `between`: lines that one run alone has in that
    step. `step` counts from 0; None: no run has any, as with mpi4py.
    """

    sentence: str
    step: int | None
    ranks: list[int]
    place: str
    other: str
    equal: str = ""
    between: list[str] = field(default_factory=list)
    evidence: list[str] = field(default_factory=list)
    next: str = ""


def first_parting(first: Sequence[RankTrace], second: Sequence[RankTrace]) -> Parting | None:
    """Return where two runs part, by the ranks that both have; None where they do not."""
    others = {trace.rank: trace for trace in second}
    looked = [_Runs(each, others[each.rank]).part() for each in first if each.rank in others]
    found = [each for each in looked if each is not None]
    if not found:
        return None
    order, parting = min(found, key=lambda each: each[0])
    for (*before, _), other in found:
        if (*before,) == order[:2] and other.place == parting.place and other is not parting:
            parting.ranks += other.ranks
    return parting


def aligned(a: Sequence[object], b: Sequence[object]) -> Iterator[Pair]:
    """Yield which items of two sequences belong together, and with None those of one alone."""
    at, other = 0, 0
    while at < len(a) and other < len(b):
        if a[at] == b[other]:
            yield at, other
            at, other = at + 1, other + 1
            continue
        mine, others = a[at : at + WINDOW], b[other : other + WINDOW]
        blocks = SequenceMatcher(None, mine, others, autojunk=False).get_matching_blocks()
        ends = at + len(mine) == len(a) and other + len(others) == len(b)
        block = next((each for each in blocks if each.size >= ENOUGH or (ends and each.size)), None)
        skip = (block.a, block.b) if block is not None else (len(mine), len(others))
        yield from ((at + each, None) for each in range(skip[0]))
        yield from ((None, other + each) for each in range(skip[1]))
        at, other = at + skip[0], other + skip[1]
    yield from ((each, None) for each in range(at, len(a)))
    yield from ((None, each) for each in range(other, len(b)))


class _Runs:
    """One rank in two runs."""

    def __init__(self, a: RankTrace, b: RankTrace) -> None:
        self.a, self.b = a, b
        self._alone: tuple[set[int], set[int]] = (set(), set())
        self._step = self._calls = 0
        self._steps = [sum(isinstance(line, Step) for line in each.lines) for each in (a, b)]
        self._equal = ""
        self._since: list[str] = []
        self._began = 0, 0

    def part(self) -> tuple[Order, Parting] | None:
        """Return the first difference, and its order among those of other ranks."""
        lines = [
            [at for at, line in enumerate(trace.lines) if isinstance(line, Call | Op | Step)]
            for trace in (self.a, self.b)
        ]
        keys = [
            [_key(trace.lines[at]) for at in each]
            for trace, each in zip((self.a, self.b), lines, strict=True)
        ]
        for mine, others in aligned(*keys):
            at = lines[0][mine] if mine is not None else None
            other = lines[1][others] if others is not None else None
            if at is None or other is None:
                self._note_alone(at, other)
                continue
            found = self._compared(at, other)
            if found is not None:
                return found
        return self._ended()

    def _note_alone(self, at: int | None, other: int | None) -> None:
        for trace, each, alone, which in (
            (self.a, at, self._alone[0], "first"),
            (self.b, other, self._alone[1], "second"),
        ):
            if each is not None:
                alone.add(each)
                self._since.append(f"only the {which} run: {_said(trace, each)}")

    def _compared(self, at: int, other: int) -> tuple[Order, Parting] | None:
        mine, others = self.a.lines[at], self.b.lines[other]
        if isinstance(mine, Step) and isinstance(others, Step):
            names = _differing_names(mine, others)
            if names:
                text = f"{names[0]} in the {mine.optimizer} step at {mine.place}"
                lone = [max((each for each in some if each > since), default=None)
                        for some, since in zip(self._alone, self._began, strict=True)]  # fmt: skip
                culprits = (lone[0], lone[1]) if any(lone) else (at, other)
                return self._parting(at, other, text, culprits)
            self._step, self._since, self._began = self._step + 1, [], (at, other)
        elif isinstance(mine, Call | Op) and isinstance(others, Call | Op):
            if isinstance(mine, Op) and (mine.makes_nothing or mine.plain in VIEWS):
                return None
            sends = isinstance(mine, Call) and _differ(mine.inputs, others.inputs)
            if sends or _differ(_results(mine, others), others.outputs):
                return self._judged(at, other, mine, others)
            self._calls += isinstance(mine, Call)
        self._equal = _said(self.a, at)
        return None

    def _judged(
        self, at: int, other: int, mine: Call | Op, others: Call | Op
    ) -> tuple[Order, Parting]:
        """Values differ here first: by this line, by one that a run has alone, or from outside."""
        pairs = [each for each in zip(mine.uses, others.uses, strict=False) if each[0] != each[1]]
        for one, another in pairs:
            makers = self.a.maker(one, at), self.b.maker(another, other)
            alone = [
                each if each in known else None
                for each, known in zip(makers, self._alone, strict=True)
            ]
            if alone != [None, None]:
                text = "what one run alone computes"
                return self._parting(at, other, text, (alone[0], alone[1]))
        if pairs:
            text = "a value that comes from outside"
            if not self._has_operations:
                text = "what has been computed since the last equal line"
            return self._parting(at, other, text, (at, other))
        text = "what is computed here"
        if isinstance(mine, Op) and mine.random:
            same = mine.arguments == getattr(others, "arguments", "")
            text = "chance" if same else "other arguments"
        return self._parting(at, other, text, (at, other))

    def _parting(self, at: int, other: int, text: str, culprits: Pair) -> tuple[Order, Parting]:
        places = [
            trace.lines[each].user_place if each is not None else ""  # type: ignore[union-attr]
            for trace, each in zip((self.a, self.b), culprits, strict=True)
        ]
        evidence = [
            f"{which} run: {_said(trace, each)}"
            for which, trace, each in zip(
                ("first", "second"), (self.a, self.b), culprits, strict=True
            )
            if each is not None
        ]
        if culprits != (at, other):
            evidence.append(f"first different: {_said(self.a, at)}")
        mine, others = self.a.lines[at], self.b.lines[other]
        is_call = isinstance(mine, Call) and isinstance(others, Call)
        received = is_call and not _differ(mine.inputs, others.inputs)  # type: ignore[union-attr]
        parting = Parting(
            sentence=f"values differ by {text}",
            step=self._step if self._is_torch else None,
            ranks=[self.a.rank],
            place=places[0],
            other=places[1],
            equal=self._equal,
            between=self._since[:8],
            evidence=evidence,
            next="" if not self._is_torch or self._has_operations else LOCATE,
        )
        return (self._calls, received, at), parting

    @property
    def _has_operations(self) -> bool:
        return self.a.has_operations and self.b.has_operations

    @property
    def _is_torch(self) -> bool:
        """Whether a run has torch, and so steps and operations."""
        heads = self.a.lines[0], self.b.lines[0]
        has_torch = any(isinstance(each, Head) and each.torch for each in heads)
        return has_torch or any(self._steps) or self._has_operations

    def _ended(self) -> tuple[Order, Parting] | None:
        steps = self._steps
        if steps[0] == steps[1]:
            return None
        parting = Parting(
            sentence=f"the first run made {steps[0]} steps, the second {steps[1]}",
            step=min(steps), ranks=[self.a.rank], place="", other="", equal=self._equal,
            between=self._since[:8],
        )  # fmt: skip
        return (self._calls, False, len(self.a.lines)), parting


def _key(line: object) -> tuple[object, ...]:
    """The key by which lines of two traces are matched; line numbers may have moved."""
    if isinstance(line, Call):
        return ("call", line.name, line.group, tuple(line.shape or ()))
    if isinstance(line, Op):
        return ("op", line.name, line.place.rpartition(" ")[2])
    return ("step", line.optimizer) if isinstance(line, Step) else ()


def _said(trace: RankTrace, at: int) -> str:
    line = trace.lines[at]
    said = f"{line.optimizer}.step()" if isinstance(line, Step) else getattr(line, "said", "")
    return f"{said} at {getattr(line, 'user_place', '')}"


def _results(mine: Call | Op, others: Call | Op) -> list[str]:
    """Return the outputs that count: of the same inputs, the first; others may be work space."""
    same = isinstance(mine, Op) and not mine.random and mine.uses == others.uses
    return mine.outputs[:1] if same else mine.outputs


def _differ(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether hashes differ, as far as both are known."""
    pairs = zip(one, other, strict=False)
    return any(mine and others and mine != others for mine, others in pairs)


def _differing_names(mine: Step, others: Step) -> list[str]:
    tables = (
        ("", mine.before, others.before),
        ("the gradient of ", mine.gradients, others.gradients),
        ("", mine.after, others.after),
    )
    return [
        f"{what}{name}"
        for what, one, other in tables
        for name, value in one.items()
        if name in other
        and value
        and other[name]
        and value != other[name]
        and _are_of_one_part(value, other[name])
    ]


def _are_of_one_part(one: str, other: str) -> bool:
    """Whether two hashes are of the whole, or of the same part: those have its number and `~`."""
    return one.rpartition("~")[0] == other.rpartition("~")[0]
