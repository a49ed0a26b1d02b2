"""What has no bound and is worth watching: many ranks, much output, a quick start."""

from __future__ import annotations

import os
import subprocess
import sys
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
STARTS: Final = 7
PRINTERS: Final = 4
LINES: Final = 25_000  # for each


def run() -> Iterator[Figure]:
    """Tell the figures; none of them fails."""
    yield from _many_ranks()
    yield _output()
    yield _start()


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


def _start() -> Figure:
    """CPU of importing what `dap-mux adapter` runs on, above a bare interpreter's."""
    bare, ours = (
        median(_cpu_of(code) for _ in range(STARTS))
        for code in ("pass", "import anyio, uvloop, dap_mux.cli, dap_mux.session")
    )
    return Figure("CPU of starting the adapter", shown(ours - bare), f"{shown(bare)} python")


def _cpu_of(code: str) -> float:
    process = subprocess.Popen([sys.executable, "-c", code])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime
