"""`cast` of an expression to 1,024 ranks: CPU for each, beside the least it costs in Python.

Both are processes of their own with a connection to each of the same fake ranks; they take turns.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median, quantiles
from typing import Final

from tests.bench.attaching import attach
from tests.bench.figures import Figure, at_most, shown
from tests.bench.growth_session import allow_files
from tests.bench.processes import Running, helper, on, place, processors, proxy
from tests.bench.wire import Wire

RANKS: Final = 1024
BOUND: Final = 1.5
ROUNDS: Final = 60
WARM_UP: Final = 5
_FRAME: Final = 2  # what the fake rank calls its frame
_EXPRESSION: Final = "small"


def run() -> Iterator[Figure]:
    """Measure both in one run, in turns."""
    allow_files(RANKS)
    ends, middle = processors()
    with ExitStack() as stack:
        stack.enter_context(on(ends))
        _, ports = stack.enter_context(helper("fake_ranks", RANKS))
        pid, [port] = stack.enter_context(helper("count_only", _EXPRESSION, _FRAME, *ports))
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
            costs["floor"].append(_cost(floor, lambda: _round(bare)))
        # the lower quartile: what else runs on the machine only ever adds to a round
        ours, least = (quantiles(found[WARM_UP:])[0] / RANKS for found in costs.values())
        yield at_most(f"cast to {RANKS} ranks, CPU each", ours, least, BOUND, "count-only")
        yield Figure(f"cast to {RANKS} ranks, until told", shown(median(times[WARM_UP:])))


def _stop(wire: Wire) -> None:
    """Attach, and have every rank stopped in a frame that is known."""
    attach(wire, "/job/train.py", [6], rows=False)
    while wire.ask("list")["counts"]["running"] != RANKS:
        pass
    wire.send("evaluate", {"expression": "stop"})
    while wire.ask("list")["counts"]["stopped"] != RANKS:
        pass


def _cost(process: Running, act: Callable[[], object]) -> float:
    before = process.cpu
    act()
    return process.cpu - before


def _cast(wire: Wire) -> float:
    """Seconds until one cast to all is answered."""
    timed = wire.timed("cast", {"ranks": "all", "command": f"p {_EXPRESSION}"})
    (result,) = timed.body["results"]
    assert result["ranks"] == f"0-{RANKS - 1}", timed.body
    wire.drain()
    return timed.seconds


def _round(bare: socket.socket) -> None:
    bare.sendall(b".")
    assert bare.recv(1) == b"."
