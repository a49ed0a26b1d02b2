"""`stacks` of all ranks: one tree of the Python stacks of a job that runs; nobody is paused for it.

The real ranks are as `dap-mux run` starts them and are at work all the time; the simulated ones
stand in eight places, under 20 frames each, and cost next to nothing. The cost of one is the
session's CPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from tests.bench.agents import agents
from tests.bench.attaching import attach
from tests.bench.figures import Figure, at_most, not_measured, within
from tests.bench.growth_session import PATH, allow_files, scene
from tests.bench.wire import Wire

REAL: Final = 64
REAL_BOUND: Final = 1.0  # s
FEW: Final = 256
MANY: Final = 4096
MANY_BOUND: Final = 2.0  # s
GROWTH_BOUND: Final = 1.5
TIMES: Final = 5
_ASKED: Final = {"ranks": "all"}
_SCRIPT: Final = """\
import time


def forward(layers):
    if layers:
        return forward(layers - 1)
    time.sleep(0.01)
    return 0


while True:
    forward(16)
"""


def run() -> Iterator[Figure]:
    """Measure real ranks, then simulated ones."""
    yield _real()
    if not allow_files(MANY):
        yield not_measured(f"stacks, {MANY:,} ranks", "too few open files are allowed")
        return
    _, few = _simulated(FEW)
    seconds, each = _simulated(MANY)
    yield within(f"stacks, {MANY:,} simulated ranks", seconds, MANY_BOUND)
    yield at_most(f"stacks, each of {MANY:,}", each, few, GROWTH_BOUND, f"of {FEW}")


def _real() -> Figure:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        script = Path(folder) / "train.py"
        script.write_text(_SCRIPT, "utf-8")
        with agents(REAL, script) as job, Wire(job.session.port) as wire:
            attach(wire, str(script), rows=False)
            while wire.ask("list")["counts"].get("running") != REAL:
                pass
            took = [_asked(wire, REAL) for _ in range(TIMES)]
            wire.ask("disconnect")
    return within(f"stacks, {REAL} real ranks", median(took), REAL_BOUND)


def _simulated(ranks: int) -> tuple[float, float]:
    """Return the seconds until the answer, and the session's CPU for each rank."""
    with scene(ranks) as one:
        attach(one.wire, PATH, rows=False)
        one.until("running")
        took = [_asked(one.wire, ranks) for _ in range(TIMES)]
        one.measure("stacks", one.ask("stacks", **_ASKED), TIMES)
    return median(took), one.costs["stacks"]


def _asked(wire: Wire, ranks: int) -> float:
    """Ask once; every rank has to be in the tree."""
    timed = wire.timed("stacks", _ASKED)
    (thread,) = timed.body["threads"]
    assert thread["ranks"] == f"0-{ranks - 1}", thread["ranks"]
    return timed.seconds
