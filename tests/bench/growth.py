"""What one rank costs the session, and whether that grows with the number of ranks.

Each figure is the median of several sessions. A rank's cost at 4,096 ranks is judged by its cost at
256, so that a look at every rank for each rank cannot come back unseen; and the costs that users
wait for are judged by the least that they take in Python, measured in the same run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from tests.bench.figures import Figure, at_most, not_measured, shown, within
from tests.bench.growth_floors import handshake_floor, storm_floor
from tests.bench.growth_session import FIRST_STOP, allow_files, attached, leave, scene, walk

SIZES: Final = (64, 256, 1024, 4096)
FEW: Final = 256
MANY: Final = 4096
TIMES: Final = 3
BOUND: Final = 1.5
STOP_BOUND: Final = 12.0
ATTACH_BOUND: Final = 2.5
SET_BOUND: Final = 60e-6  # s
MEMORY_BOUND: Final = 12 * 1024  # bytes
END_BOUND: Final = 2.0  # s more than where ranks are few


@dataclass(frozen=True)
class Costs:
    """Of one session: seconds of CPU for each rank, by operation; bytes of a rank; seconds."""

    cpu: Mapping[str, float]
    memory: float
    end: float


def run() -> Iterator[Figure]:
    """Measure sessions of all sizes, and what the same takes at least."""
    sizes = [size for size in SIZES if allow_files(size)]
    found = {size: [_session(size) for _ in range(TIMES)] for size in sizes}
    if MANY not in found:
        yield not_measured(f"growth to {MANY:,} ranks", "too few open files are allowed")
        return
    for name in found[MANY][0].cpu:
        yield _growth(name, {size: _cpu(costs, name) for size, costs in found.items()})
    for size in (size for size in sizes if size > FEW):
        yield from _bounds(size, found[size])
    memory = median(costs.memory for costs in found[MANY])
    yield _memory(memory)
    first, last = (median(costs.end for costs in found[size]) for size in (sizes[0], MANY))
    yield within(f"SIGTERM, {MANY:,} above {sizes[0]}", last - first, END_BOUND)


def _session(ranks: int) -> Costs:
    with scene(ranks) as one:
        before = one.memory
        walk(one)
        memory = (one.memory - before) / ranks
        leave(one)
    with scene(ranks) as other:
        attached(other, "ranks(::2)")
        end = other.end()
    return Costs({**one.costs, **other.costs}, memory, end)


def _cpu(costs: Sequence[Costs], name: str) -> float:
    return median(each.cpu[name] for each in costs)


def _growth(name: str, costs: Mapping[int, float]) -> Figure:
    others = " ".join(f"{costs[size] * 1e6:.0f}" for size in costs if size != MANY)
    sizes = " ".join(str(size) for size in costs if size != MANY)
    ratio = costs[MANY] / costs[FEW]
    return Figure(
        f"{name}, each of {MANY:,}",
        shown(costs[MANY]),
        f"{others} µs of {sizes}",
        f"{ratio:.2f} x of {FEW}",
        f"<= {BOUND:g} x",
        ratio <= BOUND,
    )


def _bounds(ranks: int, costs: Sequence[Costs]) -> Iterator[Figure]:
    """Compare what users wait for with the least that it takes."""
    storm = median(storm_floor(ranks) for _ in range(TIMES))
    stops = {name: _cpu(costs, name) for name in ("stop", FIRST_STOP)}
    yield at_most(f"stop, each of {ranks:,}", stops["stop"], storm, STOP_BOUND, "counted")
    first = f"{FIRST_STOP}, each of {ranks:,}"
    yield at_most(first, stops[FIRST_STOP], storm, STOP_BOUND, "counted")
    cost = _cpu(costs, "setBreakpoints")
    yield within(f"setBreakpoints, each of {ranks:,}", cost, SET_BOUND)
    bare = median(handshake_floor(ranks) for _ in range(TIMES))
    attach = f"attach, each of {ranks:,}"
    yield at_most(attach, _cpu(costs, "attach"), bare, ATTACH_BOUND, "bare")


def _memory(each: float) -> Figure:
    return Figure(
        f"memory, each of {MANY:,}",
        f"{each / 1024:.1f} KiB",
        bound=f"<= {MEMORY_BOUND / 1024:.0f} KiB",
        held=each <= MEMORY_BOUND,
    )
