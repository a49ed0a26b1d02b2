"""A hit of a differ breakpoint on eight ranks: they tell their values, wait, and all run on.

The time from one hit to the next, beside one expression evaluated in one of them, and in all eight.
The ranks are as `dap-mux run` starts them, or as debugpy comes; the program does nothing else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from tests.bench.agents import agents, stock
from tests.bench.attaching import attach, stopped_frame
from tests.bench.figures import Figure, at_most, shown
from tests.bench.wire import Wire

RANKS: Final = 8
TIMES: Final = 8
HITS: Final = 100
EVALUATES: Final = 60
ROUNDS: Final = 5
LINE: Final = 14
_SCRIPT: Final = """\
import itertools
import os

import debugpy

if "DEBUGPY_PORT" in os.environ:  # else it is run under our agent, which listens
    debugpy.listen(("127.0.0.1", int(os.environ["DEBUGPY_PORT"])))
rank = int(os.environ["RANK"])
hits = itertools.count(1)  # the ranks run, and so count from the first hit that is compared


def step(number):
    loss = number * 0.5
    return loss


number = 0
while True:
    number += 1
    step(number)
"""
_CONDITION: Final = f"differ: rank * (next(hits) % {HITS} == 0)"


def run() -> Iterator[Figure]:
    """Measure both in one run, in turns."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        script = Path(folder) / "train.py"
        script.write_text(_SCRIPT, "utf-8")
        for name, start in (("a rank of run", agents), ("debugpy", stock)):
            with start(RANKS, script) as job, Wire(job.session.port) as wire:
                hit, in_all, in_one = _measure(wire, str(script))
            what = f"differ hit, {RANKS} x {name}"
            yield at_most(what, hit, in_one, TIMES, "evaluated in one")
            beside = f"{shown(in_all)} evaluated in all"
            yield Figure(what, shown(hit), beside, f"{hit / in_all:.2f} x")


def _measure(wire: Wire, path: str) -> tuple[float, float, float]:
    attach(wire, path)
    breakpoints = [{"line": LINE, "condition": _CONDITION}]
    wire.ask("setBreakpoints", {"source": {"path": path}, "breakpoints": breakpoints})
    hits, in_all, in_one = [], [], []
    everywhere = {"ranks": "all", "command": "p rank"}
    frame = stopped_frame(wire)
    for _ in range(ROUNDS):
        asked = {"expression": "number + 1", "frameId": frame, "context": "watch"}
        in_one += [wire.timed("evaluate", asked).seconds for _ in range(EVALUATES)]
        in_all += [wire.timed("cast", everywhere).seconds for _ in range(EVALUATES)]
        start = perf_counter()
        wire.ask("continue", {"threadId": 1})
        frame = stopped_frame(wire)
        hits.append((perf_counter() - start) / HITS)
    wire.ask("disconnect")
    return median(hits), median(in_all), median(in_one)
