"""What the proxy costs on a message that is ready, beside a bare byte forwarder.

Both are processes of their own on the same kind of event loop, in front of the same fake rank, and
the client alternates between them. They share one processor, client and rank another: left alone,
the scheduler puts now two and now four of these beside each other, which changes all times twofold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median
from typing import Final

from tests.bench.attaching import attach, stopped_frame
from tests.bench.figures import Figure, at_most
from tests.bench.processes import helper, on, place, processors, proxy
from tests.bench.wire import Json, Wire

BOUND: Final = 1.5
ROUNDS: Final = 60
EACH: Final = 40
WARM_UP: Final = 5  # rounds
_FRAME: Final = 2  # what the fake rank calls its frame
Probe = Callable[[Wire, int], float]


def run() -> Iterator[Figure]:
    """Measure answers of three sizes, an event and a list of variables."""
    ends, middle = processors()
    with ExitStack() as stack:
        stack.enter_context(on(ends))
        _, [port] = stack.enter_context(helper("fake_ranks", 1))
        relay, [relay_port] = stack.enter_context(helper("forwarder", port))
        through = stack.enter_context(proxy([port]))
        for pid in (relay, through.pid):
            place(pid, middle)
        ours, bare = (stack.enter_context(Wire(p)) for p in (through.port, relay_port))
        for wire in (ours, bare):
            attach(wire, "/job/train.py", [6])
        frames = {ours: _stop(ours), bare: _FRAME}
        for name, probe in PROBES.items():
            yield _compare(name, probe, frames, ours, bare)


def _stop(wire: Wire) -> int:
    wire.ask("evaluate", {"expression": "stop"})
    return stopped_frame(wire)


def _compare(name: str, probe: Probe, frames: dict[Wire, int], ours: Wire, bare: Wire) -> Figure:
    times: dict[Wire, list[float]] = {ours: [], bare: []}
    for turn in range(WARM_UP + ROUNDS):
        for wire, frame in frames.items():
            found = [probe(wire, frame) for _ in range(EACH)]
            wire.drain()
            if turn >= WARM_UP:
                times[wire] += found
    return at_most(
        f"passthrough {name}", median(times[ours]), median(times[bare]), BOUND, "forwarder"
    )


def _evaluate(expression: str) -> Probe:
    def probe(wire: Wire, frame: int) -> float:
        arguments: Json = {"expression": expression, "frameId": frame, "context": "watch"}
        return wire.timed("evaluate", arguments).seconds

    return probe


def _event(wire: Wire, frame: int) -> float:
    """One way only: the rank says when it has sent it."""
    wire.ask("evaluate", {"expression": "event", "frameId": frame, "context": "watch"})
    return -float(wire.event("module")["sent"]) + wire.arrived


PROBES: Final[dict[str, Probe]] = {
    "answer, 0.2 kB": _evaluate("small"),
    "answer, 6 kB": _evaluate("large"),
    "answer, 6 kB with an id": _evaluate("object"),
    "event, 0.2 kB": _event,
}
