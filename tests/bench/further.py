"""What has no bound and is worth watching: many ranks, much output."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import perf_counter
from typing import Final

from tests.bench.attaching import attach
from tests.bench.figures import Figure, shown
from tests.bench.processes import helper, proxy
from tests.bench.wire import Wire

RANKS: Final = 256
TIMES: Final = 30
PRINTERS: Final = 4
LINES: Final = 25_000  # for each


def run() -> Iterator[Figure]:
    """Tell the figures; none of them fails."""
    yield from _many_ranks()
    yield _output()


def _many_ranks() -> Iterator[Figure]:
    with (
        helper("fake_ranks", RANKS) as (_, ports),
        proxy(ports) as through,
        Wire(through.port) as wire,
    ):
        start = perf_counter()
        attach(wire, "/job/train.py", [6], rows=False)
        _until_all(wire, "running")
        yield Figure(f"attach {RANKS} fake ranks", shown(perf_counter() - start))
        answers = [wire.timed("list").seconds for _ in range(TIMES)]
        yield Figure(f"list of {RANKS} ranks, p50", shown(median(answers)))
        start, cpu = perf_counter(), through.cpu
        wire.send("evaluate", {"expression": "stop"})
        wire.event("stopped")
        yield Figure(f"{RANKS} ranks stop, until told", shown(perf_counter() - start))
        yield Figure("CPU for each rank's stop", shown((through.cpu - cpu) / RANKS))


def _until_all(wire: Wire, state: str) -> None:
    while wire.ask("list")["counts"].get(state) != RANKS:
        pass


def _output() -> Figure:
    with (
        helper("fake_ranks", PRINTERS) as (_, ports),
        proxy(ports) as through,
        Wire(through.port) as wire,
    ):
        attach(wire, "/job/train.py")
        before, told = through.cpu, 0
        wire.send("evaluate", {"expression": f"print {LINES}"})
        while told < LINES:
            told += wire.event("output")["output"].count("\n")
        used = (through.cpu - before) / (PRINTERS * LINES)
    return Figure("CPU for each output event", shown(used))
