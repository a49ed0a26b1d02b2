"""Where runs of different numbers of ranks part: by sums of values, beyond a tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, isnan, sqrt
from statistics import fmean
from typing import Final

from msgspec import Struct

from dap_mux.pure.errors import DapMuxError
from dap_mux.pure.insight.numerics.diverge import first_divergence
from dap_mux.pure.insight.numerics.diverge_replicas import Replicas
from dap_mux.pure.insight.numerics.diverge_runs import Parting
from dap_mux.pure.insight.numerics.diverge_trace import REDUCES, Call, RankTrace, Update

ROUNDING: Final = 3.0
"""Of the root of a dtype's epsilon: float32 0.001, bfloat16 0.27."""
OF_UPDATE: Final = 0.25
"""Adam makes a whole step of a gradient that is only rounding (docs/internals/comm.md)."""
LOST: Final = 30.0
"""Of epsilon, beside the largest gradient of the step: a smaller one is only rounding."""
NOISE: Final = 3.0
"""How much more than the measured noise is a difference."""
LEAST: Final = 1e-6
EVEN: Final = 0.01
"""Ratios that differ by less are one."""
WHAT: Final = {"before": "{}", "gradients": "the gradient of {}", "after": "{}"}


class Sums(Struct, frozen=True):
    """The sums of one value, of all its parts."""

    epsilon: float
    count: float
    square: float
    projections: tuple[float, ...]

    @property
    def norm(self) -> float:
        """Its length."""
        return sqrt(self.square) if self.square >= 0 else self.square

    @property
    def rms(self) -> float:
        """The size of its elements."""
        return sqrt(self.square / self.count) if self.count else 0.0

    def apart(self, other: Sums) -> float:
        """Estimate the length of the difference: a projection of it is about as long, squared."""
        squares = [(a - b) ** 2 for a, b in zip(self.projections, other.projections, strict=True)]
        return max(sqrt(fmean(squares)), abs(self.norm - other.norm))


def _sums(epsilon: float, count: float, square: float, *projections: float) -> Sums:
    return Sums(epsilon, count, square, projections)


class Apart(Struct, frozen=True):
    """A value that differs: `ranks` of the run with more of them."""

    name: str
    distance: float
    ratio: float
    ranks: list[int]


class Run:
    """The values of all ranks of one run, by the names of whole parameters."""

    def __init__(self, traces: Sequence[RankTrace]) -> None:
        self.traces = traces
        self.updates: dict[str, list[tuple[RankTrace, str, list[Update]]]] = {}
        for trace in traces:
            for name, updates in trace.updates.items():
                found = self.updates.setdefault(name.partition("@")[0], [])
                found.append((trace, name, updates))
        self.steps = max(
            (len(each[2]) for some in self.updates.values() for each in some), default=0
        )

    def copies(self, name: str, what: str, at: int) -> dict[int, Sums]:
        """Return a value as ranks have it; of shards, their sum, as the first rank's."""
        parts: dict[str, list[float]] = {}
        copies: dict[int, Sums] = {}
        for trace, shard, updates in self.updates[name]:
            sums = updates[at].step.sums.get(what, {}).get(shard) if at < len(updates) else None
            if sums and len(sums) > 3 and shard == name:
                copies[trace.rank] = _sums(*sums)
            elif sums and len(sums) > 3:
                parts.setdefault(shard, sums)
        if parts:
            epsilon = next(iter(parts.values()))[0]
            total = [sum(column) for column in zip(*parts.values(), strict=True)][1:]
            copies[self.updates[name][0][0].rank] = _sums(epsilon, *total)
        return copies


class Comparison:
    """Two runs, step by step. `largest`: the largest distance that was none, and whose."""

    def __init__(self, first: Run, second: Run, tolerance: float | None = None) -> None:
        self.runs = first, second
        self.tolerance = tolerance
        self.noise: dict[str, float] = {}
        self.names = [
            name
            for name in first.updates
            if name in second.updates
            and all(run.copies(name, "after", 0) for run in (first, second))
        ]
        self.steps = min(first.steps, second.steps)
        self.largest = 0.0, ""
        self._lost: set[str] = set()
        if not self.names:
            raise DapMuxError("the two runs have no parameter in common whose values are recorded")

    def first(self) -> tuple[int, str, list[Apart]] | None:
        """Return the first step in which something differs, what of it, and whose."""
        for at in range(self.steps):
            self._note_lost(at)
            for what in WHAT:
                found = [self._apart(name, what, at) for name in self.names]
                if any(found):
                    return at, what, [each for each in found if each is not None]
        return None

    def measure(self) -> dict[str, float]:
        """Return how far the runs are apart at most, by what is compared."""
        found: dict[str, float] = dict.fromkeys(WHAT, 0.0)
        for at in range(self.steps):
            self._note_lost(at)
            for what in WHAT:
                for name in self.names:
                    for distance, _ in self._distances(name, what, at)[1].values():
                        found[what] = max(found[what], distance)
        return found

    def _note_lost(self, at: int) -> None:
        """Leave out whose gradient is only rounding, as of a bias that has no effect."""
        run = self.runs[0]
        found = {name: [*run.copies(name, "gradients", at).values()] for name in self.names}
        most = max((each.rms for some in found.values() for each in some), default=0.0)
        for name, some in found.items():
            if any(each.rms < LOST * each.epsilon * most for each in some):
                self._lost.add(name)

    def _distances(
        self, name: str, what: str, at: int
    ) -> tuple[Sums | None, dict[int, tuple[float, float]]]:
        """Return a value, and how far from it, and how often as long, each copy is."""
        copies = [run.copies(name, what, at) for run in self.runs]
        least, most = sorted(copies, key=len)
        if name in self._lost or not least or (what == "before" and at):
            return None, {}
        one, found = next(iter(least.values())), {}
        for rank, each in most.items():
            if each.count != one.count:
                continue  # a shard that a program has made by hand
            size = max(one.norm, each.norm)
            distance = one.apart(each) / size if size else 0.0
            ratio = each.norm / one.norm if one.norm else inf
            is_new = isnan(each.norm) != isnan(one.norm)
            found[rank] = inf if is_new else 0.0 if isnan(distance) else distance, ratio
        return one, found

    def _apart(self, name: str, what: str, at: int) -> Apart | None:
        one, found = self._distances(name, what, at)
        if one is None:
            return None
        allowed = self._allowed(name, what, one)
        beyond = {rank: each for rank, each in found.items() if each[0] > allowed}
        within = max((each[0] for each in found.values() if each[0] <= allowed), default=0.0)
        if within > self.largest[0]:
            self.largest = within, f"{WHAT[what].format(name)}, step {at}"
        if not beyond:
            return None
        return Apart(name, max(beyond.values())[0], beyond[min(beyond)][1], sorted(beyond))

    def _allowed(self, name: str, what: str, one: Sums) -> float:
        if what in self.noise:
            return max(NOISE * self.noise[what], LEAST)
        allowed = self.tolerance or ROUNDING * sqrt(one.epsilon)
        begin = self.runs[0].copies(name, "before", 0)
        if what == "after" and one.norm:
            moved = min((one.apart(each) for each in begin.values()), default=0.0)
            allowed += OF_UPDATE * moved / one.norm
        return allowed


def have_values(traces: Sequence[RankTrace]) -> bool:
    """Whether they have sums of values: those of earlier releases have none."""
    steps = (some[0].step for trace in traces for some in trace.updates.values())
    return any(step.sums for step in steps)


def first_beyond(
    first: Sequence[RankTrace],
    second: Sequence[RankTrace],
    tolerance: float | Sequence[RankTrace] | None,
) -> Parting | str:
    """Return where two runs part beyond a tolerance, or what to say where they do not.

    `tolerance`: relative, the trace of another run like the first, or None: by dtype.
    """
    runs = Run(first), Run(second)
    compared = Comparison(*runs, tolerance if isinstance(tolerance, float) else None)
    if tolerance is not None and not isinstance(tolerance, float):
        compared.noise = Comparison(runs[0], Run(tolerance)).measure()
    found = compared.first()
    if found is not None:
        return _said(compared, *found)
    text = f"no difference beyond tolerance; parameters compared: {len(compared.names)}"
    text += f", steps: {compared.steps}"
    largest, whose = compared.largest
    return f"{text}; the largest is {largest:.1e} ({whose})" if whose else text


def _said(compared: Comparison, at: int, what: str, found: list[Apart]) -> Parting:
    worst = max(found, key=lambda each: each.distance)
    whose = WHAT[what].format(worst.name)
    text = f"{whose} differs by about {worst.distance:.1g} of its size"
    if len(found) > 1:
        text += f", and {len(found) - 1} of {len(compared.names) - 1} others differ"
    ratios = [each.ratio for each in found]
    if (
        len(ratios) > 1
        and max(ratios) - min(ratios) < EVEN * min(ratios)
        and abs(ratios[0] - 1) > EVEN
    ):
        text += f": all are {fmean(ratios):.3g} times those of {_fewer(compared)}"
    places = [_place(run, worst, at) for run in compared.runs]
    steps = [each[2][at].step for each in compared.runs[0].updates[worst.name][:1]]
    return Parting(
        sentence=text, step=steps[0].number, ranks=worst.ranks, place=places[0], other=places[1],
        evidence=[*_of_replicas(compared, steps[0].number)],
    )  # fmt: skip


def _fewer(compared: Comparison) -> str:
    sizes = [len(run.traces) for run in compared.runs]
    return "the first run" if sizes[0] <= sizes[1] else "the second run"


def _place(run: Run, apart: Apart, at: int) -> str:
    """Return where a gradient was exchanged last, or others of its step, else where that is."""
    trace, name, updates = run.updates[apart.name][0]
    update = updates[at]
    own = trace.exchange(update, name)
    lines = trace.lines[own or update.since : update.at]
    calls = [line for line in lines if isinstance(line, Call) and _is_exchange(line)]
    return (calls[0] if own is not None else calls[-1]).place if calls else update.step.place


def _is_exchange(call: Call) -> bool:
    """Whether it adds up or spreads values, and more than one."""
    return call.name in REDUCES and call.shape not in ([], [1], None)


def _of_replicas(compared: Comparison, step: int) -> Iterator[str]:
    """Say what the ranks of a run have to do with it, if these part as well."""
    for run, word in zip(compared.runs, ("first", "second"), strict=True):
        found = first_divergence(Replicas(run.traces))
        if found is not None and (found.step or 0) <= step:
            yield f"among ranks of the {word} run: {found.sentence}, at {found.place}"
