"""Whether what one rank costs the session grows with the number of ranks.

Only attaching is judged. The others are so short that it shows whether a collection of garbage
falls into them, which is likelier with many ranks; without it they do not grow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Final

from tests.bench.attaching import attach
from tests.bench.figures import Figure, at_most, shown
from tests.bench.processes import Running, helper, proxy
from tests.bench.wire import Wire

FEW: Final = 256
MANY: Final = 1024
TIMES: Final = 3
BOUND: Final = 1.5
LINES: Final = range(6, 15)
PATH: Final = "/job/train.py"
REST: Final = 0.1  # s without work, after which an operation is over
IDLE: Final = 0.002  # s of CPU in that time that count as none
OPERATIONS: Final = ("attach", "setBreakpoints", "stop")


def run() -> Iterator[Figure]:
    """Compare the CPU for each rank of the three operations that every session does."""
    few, many = _costs(FEW), _costs(MANY)
    for operation in OPERATIONS:
        name, cost, before = f"{operation}, each of {MANY:,}", many[operation], few[operation]
        if operation == "attach":
            yield at_most(name, cost, before, BOUND, f"of {FEW}")
        else:
            yield Figure(name, shown(cost), f"{shown(before)} of {FEW}", f"{cost / before:.2f} x")


def _costs(ranks: int) -> dict[str, float]:
    """Return the seconds of CPU for each rank, by operation: the median of several sessions."""
    sessions = [_session(ranks) for _ in range(TIMES)]
    return {name: median(each[name] for each in sessions) / ranks for name in OPERATIONS}


def _session(ranks: int) -> dict[str, float]:
    with (
        helper("fake_ranks", ranks) as (_, ports),
        proxy(ports) as through,
        Wire(through.port) as wire,
    ):
        _rest(through)
        marks = [through.cpu]
        attach(wire, PATH, [LINES[0]], rows=False)
        marks.append(_after(through, wire, "running", ranks))
        breakpoints = [{"line": line} for line in LINES]
        wire.ask("setBreakpoints", {"source": {"path": PATH}, "breakpoints": breakpoints})
        marks.append(_after(through, wire, "running", ranks))
        wire.send("evaluate", {"expression": "stop"})
        wire.event("stopped")
        marks.append(_after(through, wire, "stopped", ranks))
    used = (after - before for before, after in pairwise(marks))
    return dict(zip(OPERATIONS, used, strict=True))


def _after(through: Running, wire: Wire, state: str, ranks: int) -> float:
    """Return the CPU used until every rank is in this state and the session is at rest."""
    _rest(through)
    while wire.ask("list")["counts"].get(state) != ranks:
        _rest(through)
    return through.cpu


def _rest(through: Running) -> None:
    before = -1.0
    while through.cpu - before > IDLE:
        before = through.cpu
        time.sleep(REST)
