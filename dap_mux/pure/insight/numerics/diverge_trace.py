"""The trace of a rank, as `run --comm-file` writes it, and what leads to which value in it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

import msgspec
from msgspec import Struct, field

from dap_mux.pure.errors import DapMuxError

ZERO = "0"
"""In place of a gradient's hash: all its elements are zero."""
REDUCES = frozenset(
    "all_reduce all_reduce_coalesced reduce_scatter reduce_scatter_tensor all_gather"
    " all_gather_into_tensor broadcast reduce reduce_scatter_tensor_coalesced".split()
)
AGREE = frozenset(
    "all_reduce all_reduce_coalesced broadcast all_gather all_gather_into_tensor".split()
)
"""Their outputs are the same in all ranks of the group."""
CARRIES = frozenset(
    "add add_ alias as_strided cat clone copy_ detach div div_ expand mul mul_ narrow reshape"
    " select slice split split_with_sizes squeeze stack t transpose unsafe_view unsqueeze view"
    " _foreach_copy_ _foreach_div_ _foreach_mul_ _reshape_alias _to_copy _unsafe_view".split()
)
"""Operations whose result is what they are given, moved or scaled."""
AVERAGES, PILES = frozenset({"mean", "sum"}), frozenset({"cat", "stack"})
"""Operations that, one after the other, scale and add what ranks have sent each other."""
VIEWS = frozenset(
    "_reshape_alias _unsafe_view alias as_strided detach diagonal expand narrow permute select"
    " slice split split_with_sizes squeeze t transpose unbind unsafe_view unsqueeze view".split()
)
"""Operations that compute nothing: their memory may be nobody's yet, as in the buckets of DDP."""
OVERWRITES = frozenset(
    "bernoulli_ cauchy_ copy_ exponential_ fill_ geometric_ log_normal_ normal_ random_ uniform_"
    " zero_ randperm arange".split()
)
"""Operations that do not look at what was in the tensor they write to."""


class Head(Struct, tag_field="kind", tag="head"):
    """The first line."""

    rank: int | None = None
    torch: str = ""
    argv: list[str] = field(default_factory=list)


class Group(Struct, tag_field="kind", tag="group"):
    """A process group, before its first call."""

    name: str
    ranks: list[int]


class Made(Struct):
    """What makes values: `inputs` and `outputs` are hashes, `tensors` addresses."""

    name: str
    place: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    tensors: list[int] = field(default_factory=list)

    @property
    def uses(self) -> list[str]:
        """The inputs that count."""
        return self.inputs

    @property
    def user_place(self) -> str:
        """The user's line that asks for it."""
        return self.place


class Call(Made, tag_field="kind", tag="call"):
    """A communication call."""

    group: str = ""
    number: int = 0
    peer: int = -1
    shape: list[int] | None = None
    dtype: str = ""

    @property
    def said(self) -> str:
        """The call as users know it."""
        return f"{self.name} #{self.number} of group {self.group}"


class Op(Made, tag_field="kind", tag="op"):
    """An operation of torch. `forward`: of one in a backward pass, where the forward one was."""

    arguments: str = ""
    random: bool = False
    forward: str = ""

    @property
    def plain(self) -> str:
        """Its name alone, without namespace and overload."""
        return [*self.name.split("."), self.name][1]

    @property
    def uses(self) -> list[str]:
        """The inputs that count."""
        return self.inputs[1:] if self.plain in OVERWRITES else self.inputs

    @property
    def user_place(self) -> str:
        """The user's line that asks for it: of a backward pass, that of the forward one."""
        return self.forward or self.place

    @property
    def makes_nothing(self) -> bool:
        """Whether it gets memory in which anything may be."""
        return "empty" in self.plain or self.plain.startswith("resize")

    @property
    def said(self) -> str:
        """The operation as users know it."""
        return f"{self.plain}({self.arguments})"


class Step(Struct, tag_field="kind", tag="step"):
    """The end of an optimizer's step, with hashes by parameter.

    `order`: what the same step has in all ranks, where ranks tell it while they run.
    """

    number: int
    optimizer: str
    place: str = ""
    before: dict[str, str] = field(default_factory=dict)
    gradients: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    tensors: dict[str, int] = field(default_factory=dict)
    constant: list[str] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)
    sums: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    equal: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    order: tuple[int, int] = (0, 0)

    @property
    def user_place(self) -> str:
        """The user's line that asks for it."""
        return self.place


Line = Head | Group | Call | Op | Step
DECODER = msgspec.json.Decoder(Line)


def lines_of(data: bytes, name: str) -> list[Line]:
    """Decode a file; its last line may be torn, as a killed job leaves it. Raises DapMuxError."""
    lines: list[Line] = []
    texts = data.split(b"\n")
    for number, text in enumerate(texts, 1):
        if not text:
            continue
        try:
            lines.append(DECODER.decode(text))
        except (msgspec.DecodeError, RecursionError) as error:
            if number == len(texts):
                break
            raise DapMuxError(f"{name}:{number}: no line of a trace: {error}") from error
    if not lines or not isinstance(lines[0], Head):
        raise DapMuxError(f"{name}: no trace: its first line is none that --comm-file writes")
    return lines


def _makes_nothing(line: Call | Op) -> bool:
    return isinstance(line, Op) and line.makes_nothing


class Update(Struct, frozen=True):
    """One update of a parameter: the step, and where in the trace it ends and begins."""

    at: int
    since: int
    step: Step


class RankTrace:
    """The lines of one rank, in order, with an index of values."""

    def __init__(self, rank: int, lines: list[Line]) -> None:
        self.rank = rank
        self.lines = lines
        self.groups = {line.name: line.ranks for line in lines if isinstance(line, Group)}
        self.updates: dict[str, list[Update]] = defaultdict(list)
        self.parameters: dict[str, str] = {}
        self.has_operations = any(isinstance(line, Op) for line in lines)
        self._calls: dict[int, dict[int | str | None, int]] = {}
        self._makers: dict[str, list[int]] = defaultdict(list)
        self.steps = [at for at, line in enumerate(lines) if isinstance(line, Step)]
        since = 0
        for at, line in enumerate(lines):
            if isinstance(line, Call | Op) and not _makes_nothing(line):
                for value in line.outputs:
                    self._makers[value].append(at)
            elif isinstance(line, Step):
                for name in line.after:
                    self.parameters[line.after[name]] = name
                    self.parameters[line.before.get(name, "")] = name
                    self.updates[name].append(Update(at, since, line))
                since = at

    def maker(self, value: str, before: int) -> int | None:
        """Return the line that has made a value last, before another; None where none is known.

        One that only passes a value on, as it was, is not what has made it, unless it writes it
        over another.
        """
        makers = self._makers.get(value, [])
        for index in range(bisect_left(makers, before) - 1, -1, -1):
            line = self.lines[makers[index]]
            if isinstance(line, Call) and value not in line.inputs:
                return makers[index]
            if isinstance(line, Op) and (value not in line.uses or line.plain in OVERWRITES):
                return makers[index]
        return None

    def is_chance(self, value: str, before: int) -> bool:
        """Whether a value is drawn, and at most scaled since."""
        while (at := self.maker(value, before)) is not None:
            line = self.lines[at]
            if not isinstance(line, Op) or len({*line.uses}) > 1:
                return False
            if line.random or not line.uses:
                return line.random
            value, before = line.uses[0], at
        return False

    def step_of(self, at: int) -> int:
        """Return how many steps have ended before a line."""
        return bisect_left(self.steps, at)

    def calls(self, since: int = 0, until: int | None = None) -> Iterator[Call]:
        """Yield the calls between two lines."""
        return (line for line in self.lines[since:until] if isinstance(line, Call))

    def exchange(self, update: Update, name: str) -> int | None:
        """Return the last call that a parameter's gradient went through before an update."""
        gradient = update.step.gradients.get(name, "")
        calls = self._calls_of(update)
        for key in (update.step.tensors.get(name), gradient):
            if key in calls:
                return calls[key]
        return self._carried(gradient, update)

    def _calls_of(self, update: Update) -> dict[int | str | None, int]:
        """Return the last call of an update by the addresses it takes and the values it makes."""
        if update.at not in self._calls:
            known: dict[int | str | None, int] = {}
            for at in range(update.since, update.at):
                call = self.lines[at]
                if isinstance(call, Call) and call.name in REDUCES:
                    known.update(dict.fromkeys([*call.tensors], at))
                    known.update(dict.fromkeys(filter(None, call.outputs), at))
            self._calls[update.at] = known
        return self._calls[update.at]

    def _carried(self, value: str, update: Update) -> int | None:
        """Follow a value back through what only moves or scales it, up to a call."""
        left = [(value, update.at)]
        seen: set[tuple[str, int]] = set()
        while left:
            value, before = left.pop()
            at = self.maker(value, before)
            if at is None or at < update.since or (value, at) in seen:
                continue
            seen.add((value, at))
            line = self.lines[at]
            if isinstance(line, Call):
                if line.name in REDUCES:
                    return at
            elif isinstance(line, Op) and (line.plain in CARRIES or self._averages(line, at)):
                left += [(each, at) for each in line.uses]
        return None

    def _averages(self, line: Op, at: int) -> bool:
        made = self.maker(line.uses[0], at) if line.plain in AVERAGES and line.uses else None
        pile = self.lines[made] if made is not None else None
        return isinstance(pile, Op) and pile.plain in PILES
