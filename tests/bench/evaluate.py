"""A value of a stopped rank, and what depends on how fast one comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from dap_mux.engine.ranks.patching import attach_expression
from dap_mux.session.session import injected_sources
from tests.bench.figures import Figure, ahead, at_most, faster, shown, within
from tests.bench.growth import FRAME, LINES, PATH
from tests.bench.processes import (
    STOP_LINE,
    agents,
    helper,
    on,
    place,
    processors,
    proxy,
    real_ranks,
    script,
    stock,
)
from tests.bench.wire import Wire, attach, stopped_frame

TIMES_FASTER: Final = 20
RUN_TIMES_FASTER: Final = 100
MOST: Final = 1e-3  # s
ROUNDS: Final = 10
THROUGH: Final = 60  # a round
# A round too: one after the other, as an editor asks. The first comes fast, for after a pause the
# kernel acknowledges at once; the others wait.
DIRECT: Final = 6
_SUM: Final = "number + 1"
PASSED_BOUND: Final = 1.5
PASSED_ROUNDS: Final = 60
EACH: Final = 40
WARM_UP: Final = 5  # rounds
Probe = Callable[[Wire, int], float]
RANKS: Final = 8
HIT_TIMES: Final = 8
HITS: Final = 100
EVALUATES: Final = 60
HIT_ROUNDS: Final = 5
HIT_LINE: Final = 14
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


def evaluate() -> Iterator[Figure]:
    """An `evaluate` in a frame of a stopped rank: through the proxy, and straight to such a rank.

    The ranks are unmodified `debugpy.listen` processes; one more is as `dap-mux run` starts it,
    again through a proxy. The direct client is as plain as an editor's socket, and so meets
    debugpy's 44 ms (docs/internals/debugpy.md), which the proxy avoids. A timer makes them, the
    same on every machine; another direct client meets none, for its rank is patched as the proxy
    does it.
    """
    with (
        real_ranks(3) as ranks,
        proxy(ranks.ports[:1]) as through,
        Wire(through.port) as ours,
        Wire(ranks.ports[1]) as direct,
        Wire(ranks.ports[2]) as undelayed,
        agents(1, Path(ranks.path)) as run_job,
        Wire(run_job.session.port) as of_run,
    ):
        frames = {}
        for wire in (ours, direct, undelayed, of_run):
            attach(wire, ranks.path, [STOP_LINE])
            frames[wire] = stopped_frame(wire)
        patches = attach_expression(injected_sources(), debug_children=False)
        undelayed.ask("evaluate", {"expression": patches})
        fast, slow, fastest, patched = [], [], [], []
        for _ in range(ROUNDS):
            slow += [direct.evaluate(_SUM, frames[direct]) for _ in range(DIRECT)]
            fast += [ours.evaluate(_SUM, frames[ours]) for _ in range(THROUGH)]
            patched += [undelayed.evaluate(_SUM, frames[undelayed]) for _ in range(THROUGH)]
            fastest += [of_run.evaluate(_SUM, frames[of_run]) for _ in range(THROUGH)]
        value = median(fast)
        yield faster(
            "evaluate p50, a rank of run",
            median(fastest),
            median(slow),
            RUN_TIMES_FASTER,
            "direct",
        )
        yield faster("evaluate p50", value, median(slow), TIMES_FASTER, "direct")
        yield within("evaluate p50", value, MOST)
        beside = "direct, its delay patched away"
        yield ahead("evaluate p50, a rank of run", median(fastest), median(patched), beside)
        yield Figure("evaluate p50", shown(value), f"{shown(median(patched))} {beside}")
        for wire in (ours, direct, undelayed, of_run):
            wire.ask("disconnect")


def passthrough() -> Iterator[Figure]:
    """What the proxy costs on a message that is ready, beside a bare byte forwarder.

    Both are processes of their own on the same kind of event loop, in front of the same fake rank,
    and the client alternates between them. They share one processor, client and rank another: left
    alone, the scheduler puts now two and now four of these beside each other, which changes all
    times twofold.
    """
    ends, middle = processors()
    with ExitStack() as stack:
        stack.enter_context(on(ends))
        _, [port] = stack.enter_context(helper("fake_ranks", 1))
        relay, [relay_port] = stack.enter_context(helper("floors", "forward", port))
        through = stack.enter_context(proxy([port]))
        for pid in (relay, through.pid):
            place(pid, middle)
        ours, bare = (stack.enter_context(Wire(p)) for p in (through.port, relay_port))
        for wire in (ours, bare):
            attach(wire, PATH, LINES[:1])
        frames = {ours: _stop(ours), bare: FRAME}
        for name, probe in PROBES.items():
            yield _compare(name, probe, frames, ours, bare)


def _stop(wire: Wire) -> int:
    wire.ask("evaluate", {"expression": "stop"})
    return stopped_frame(wire)


def _compare(name: str, probe: Probe, frames: dict[Wire, int], ours: Wire, bare: Wire) -> Figure:
    times: dict[Wire, list[float]] = {ours: [], bare: []}
    for turn in range(WARM_UP + PASSED_ROUNDS):
        for wire, frame in frames.items():
            found = [probe(wire, frame) for _ in range(EACH)]
            wire.drain()
            if turn >= WARM_UP:
                times[wire] += found
    return at_most(
        f"passthrough {name}", median(times[ours]), median(times[bare]), PASSED_BOUND, "forwarder"
    )


def _event(wire: Wire, frame: int) -> float:
    """One way only: the rank says when it has sent it."""
    wire.evaluate("event", frame)
    return -float(wire.event("module")["sent"]) + wire.arrived


PROBES: Final[dict[str, Probe]] = {
    "answer, 0.2 kB": lambda wire, frame: wire.evaluate("small", frame),
    "answer, 6 kB": lambda wire, frame: wire.evaluate("large", frame),
    "answer, 6 kB with an id": lambda wire, frame: wire.evaluate("object", frame),
    "event, 0.2 kB": _event,
}


def differ() -> Iterator[Figure]:
    """A hit of a differ breakpoint on eight ranks: they tell their values, wait, and all run on.

    The time from one hit to the next, beside one expression evaluated in one of them, and in all
    eight. The ranks are as `dap-mux run` starts them, or as debugpy comes; the program does nothing
    else.
    """
    with script(_SCRIPT) as program:
        for name, start in (("a rank of run", agents), ("debugpy", stock)):
            with start(RANKS, program) as job, Wire(job.session.port) as wire:
                hit, in_all, in_one = _measure(wire, str(program))
            what = f"differ hit, {RANKS} x {name}"
            yield at_most(what, hit, in_one, HIT_TIMES, "evaluated in one")
            beside = f"{shown(in_all)} evaluated in all"
            yield Figure(what, shown(hit), beside, f"{hit / in_all:.2f} x")


def _measure(wire: Wire, path: str) -> tuple[float, float, float]:
    attach(wire, path)
    breakpoints = [{"line": HIT_LINE, "condition": _CONDITION}]
    wire.ask("setBreakpoints", {"source": {"path": path}, "breakpoints": breakpoints})
    hits, in_all, in_one = [], [], []
    everywhere = {"ranks": "all", "command": "p rank"}
    frame = stopped_frame(wire)
    for _ in range(HIT_ROUNDS):
        in_one += [wire.evaluate(_SUM, frame) for _ in range(EVALUATES)]
        in_all += [wire.timed("cast", everywhere).seconds for _ in range(EVALUATES)]
        start = perf_counter()
        wire.ask("continue", {"threadId": 1})
        frame = stopped_frame(wire)
        hits.append((perf_counter() - start) / HITS)
    wire.ask("disconnect")
    return median(hits), median(in_all), median(in_one)
