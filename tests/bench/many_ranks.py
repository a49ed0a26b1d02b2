"""Requests to many ranks: `cast` and `stacks`."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median, quantiles
from typing import Final

from tests.bench.figures import Figure, at_most, not_measured, shown, within
from tests.bench.growth import FRAME, LINES, PATH, allow_files, round_of, scene
from tests.bench.processes import Running, agents, helper, on, place, processors, proxy, script
from tests.bench.wire import Wire, attach

CAST_TO: Final = 1024
CAST_BOUND: Final = 1.5
ROUNDS: Final = 60
WARM_UP: Final = 5
_EXPRESSION: Final = "small"
REAL: Final = 64
REAL_BOUND: Final = 1.0  # s
FEW: Final = 256
MANY: Final = 4096
MANY_BOUND: Final = 2.0  # s
GROWTH_BOUND: Final = 1.5
ASKED_TIMES: Final = 5
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


def cast() -> Iterator[Figure]:
    """`cast` of an expression to 1,024 ranks: CPU for each, beside the least it costs in Python.

    Both are processes of their own with a connection to each of the same fake ranks; they take
    turns.
    """
    allow_files(CAST_TO)
    ends, middle = processors()
    with ExitStack() as stack:
        stack.enter_context(on(ends))
        _, ports = stack.enter_context(helper("fake_ranks", CAST_TO))
        pid, [port] = stack.enter_context(helper("floors", "broadcast", _EXPRESSION, FRAME, *ports))
        floor = Running(pid, port)
        through = stack.enter_context(proxy(ports))
        for process in (floor, through):
            place(process.pid, middle)
        wire = stack.enter_context(Wire(through.port))
        bare = stack.enter_context(socket.create_connection(("127.0.0.1", floor.port)))
        _stop(wire)
        costs: dict[str, list[float]] = {"ours": [], "floor": []}
        times: list[float] = []
        for _ in range(WARM_UP + ROUNDS):
            costs["ours"].append(_cost(through, lambda: times.append(_cast(wire))))
            costs["floor"].append(_cost(floor, lambda: round_of(bare)))
        # the lower quartile: what else runs on the machine only ever adds to a round
        ours, least = (quantiles(found[WARM_UP:])[0] / CAST_TO for found in costs.values())
        yield at_most(f"cast to {CAST_TO} ranks, CPU each", ours, least, CAST_BOUND, "count-only")
        yield Figure(f"cast to {CAST_TO} ranks, until told", shown(median(times[WARM_UP:])))


def _stop(wire: Wire) -> None:
    """Attach, and have every rank stopped in a frame that is known."""
    attach(wire, PATH, LINES[:1], rows=False)
    wire.until_all(CAST_TO, "running")
    wire.send("evaluate", {"expression": "stop"})
    wire.until_all(CAST_TO, "stopped")


def _cost(process: Running, act: Callable[[], object]) -> float:
    before = process.cpu
    act()
    return process.cpu - before


def _cast(wire: Wire) -> float:
    """Seconds until one cast to all is answered."""
    timed = wire.timed("cast", {"ranks": "all", "command": f"p {_EXPRESSION}"})
    (result,) = timed.body["results"]
    assert result["ranks"] == f"0-{CAST_TO - 1}", timed.body
    wire.drain()
    return timed.seconds


def stacks() -> Iterator[Figure]:
    """`stacks` of all ranks: one tree of the Python stacks of a job that runs; nobody is paused for
    it.

    The real ranks are as `dap-mux run` starts them and are at work all the time; the simulated ones
    stand in eight places, under 20 frames each, and cost next to nothing. The cost of one is the
    session's CPU.
    """
    yield _real()
    if not allow_files(MANY):
        yield not_measured(f"stacks, {MANY:,} ranks", "too few open files are allowed")
        return
    _, few = _simulated(FEW)
    seconds, each = _simulated(MANY)
    yield within(f"stacks, {MANY:,} simulated ranks", seconds, MANY_BOUND)
    yield at_most(f"stacks, each of {MANY:,}", each, few, GROWTH_BOUND, f"of {FEW}")


def _real() -> Figure:
    with (
        script(_SCRIPT) as path,
        agents(REAL, path) as job,
        Wire(job.session.port) as wire,
    ):
        attach(wire, str(path), rows=False)
        wire.until_all(REAL, "running")
        took = [_asked(wire, REAL) for _ in range(ASKED_TIMES)]
        wire.ask("disconnect")
    return within(f"stacks, {REAL} real ranks", median(took), REAL_BOUND)


def _simulated(ranks: int) -> tuple[float, float]:
    """Return the seconds until the answer, and the session's CPU for each rank."""
    with scene(ranks) as one:
        attach(one.wire, PATH, rows=False)
        one.until("running")
        took = [_asked(one.wire, ranks) for _ in range(ASKED_TIMES)]
        one.measure("stacks", one.ask("stacks", **_ASKED), ASKED_TIMES)
    return median(took), one.costs["stacks"]


def _asked(wire: Wire, ranks: int) -> float:
    """Ask once; every rank has to be in the tree."""
    timed = wire.timed("stacks", _ASKED)
    (thread,) = timed.body["threads"]
    assert thread["ranks"] == f"0-{ranks - 1}", thread["ranks"]
    return timed.seconds
