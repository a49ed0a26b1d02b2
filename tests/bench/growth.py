"""Sessions of many simulated ranks, and what each operation costs the session's process.

Ranks are told to stop and to print by a connection of our own to one of them, so that what the
session uses is for its ranks' events alone.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

from dap_mux.session.session import CLOCK_CHECK_DELAY_S, TORCH_CHECK_DELAY_S
from tests.bench.figures import Figure, at_most, not_measured, shown, within
from tests.bench.processes import Running, helper, proxy
from tests.bench.wire import Json, Wire, attach

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
FIRST_STOP: Final = "first stop"  # by which its thread is new to the session
PATH: Final = "/job/train.py"
LINES: Final = range(6, 15)
PRINTED: Final = 20  # lines that each rank prints
REPEATED: Final = 5  # times that what is short is asked
REST: Final = 0.1  # s without work, after which an operation is over
IDLE: Final = 0.002  # s of CPU in that time that count as none
_LOOK_AGAIN: Final = 0.01  # s
_OTHER_FILES: Final = 64
_ALL: Final = {"ranks": "all"}
FRAME: Final = 2  # what a fake rank calls its frame
FLOOR_REST: Final = 0.3  # s without work, after which a storm is over
FLOOR_IDLE: Final = 0.001  # s of CPU in that time that count as none


@dataclass(frozen=True)
class Costs:
    """Of one session: seconds of CPU for each rank, by operation; bytes of a rank; seconds."""

    cpu: Mapping[str, float]
    memory: float
    end: float


def growth() -> Iterator[Figure]:
    """What one rank costs the session, and whether that grows with the number of ranks.

    Each figure is the median of several sessions. A rank's cost at 4,096 ranks is judged by its
    cost at 256, so that a look at every rank for each rank cannot come back unseen; and the costs
    that users wait for are judged by the least that they take in Python, measured in the same run.
    """
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
        before = one.through.memory
        walk(one)
        memory = (one.through.memory - before) / ranks
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


def allow_files(ranks: int) -> bool:
    """Let this process and those it starts open four files for each rank; False where they may not.

    Simulated ranks are in one process: each listens, and has two connections.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * ranks + _OTHER_FILES
    if most != resource.RLIM_INFINITY and wanted > most:
        return False
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return True


class Scene:
    """A session's process, a client of it, and a connection to one of its ranks."""

    def __init__(self, ranks: int, through: Running, wire: Wire, rank: Wire) -> None:
        self.ranks = ranks
        self.through = through
        self.wire = wire
        self.rank = rank
        self.costs: dict[str, float] = {}
        self._rest()

    def measure(
        self, name: str, act: Callable[[], object], times: int = 1, event: str = ""
    ) -> None:
        """Note the session's CPU for each rank, in seconds, of doing it; `event`: that ends it."""
        before = self.through.cpu
        for _ in range(times):
            act()
        if event:
            self.wire.event(event)
        self._rest()
        self.costs[name] = (self.through.cpu - before) / times / self.ranks
        self.wire.drain()

    def ask(self, request: str, **arguments: object) -> Callable[[], Json]:
        """Return what asks the session this."""
        return lambda: self.wire.ask(request, arguments)

    def tell_rank(self, expression: str) -> None:
        """Have all ranks do something, by one of them."""
        self.rank.ask("evaluate", {"expression": expression})

    def until(self, state: str) -> None:
        """Wait until every rank is in this state."""
        self._rest()
        while self.wire.ask("list")["counts"].get(state) != self.ranks:
            self._rest()
        self.wire.drain()

    def _rest(self) -> None:
        _rest(self.through, REST, IDLE)

    def connections(self) -> int:
        """Return how many connections the ranks have, ours not counted."""
        return int(self.rank.ask("connections")["count"]) - 1

    def end(self) -> float:
        """Return the seconds from SIGTERM until the session has left every rank."""
        start = time.perf_counter()
        os.kill(self.through.pid, signal.SIGTERM)
        while self.connections():
            time.sleep(_LOOK_AGAIN)
        return time.perf_counter() - start


@contextmanager
def scene(ranks: int) -> Iterator[Scene]:
    """Start a session of so many ranks, that is not attached yet."""
    with ExitStack() as stack:
        _, ports = stack.enter_context(helper("fake_ranks", ranks))
        through = stack.enter_context(proxy(ports))
        wire = stack.enter_context(Wire(through.port))
        rank = stack.enter_context(Wire(ports[0]))
        yield Scene(ranks, through, wire, rank)


def attached(scene: Scene, ranks: str = "") -> None:
    """Attach with one breakpoint; `ranks`: it is for these, by a name."""

    def act() -> None:
        attach(scene.wire, PATH, [LINES[0]], rows=False, ranks=ranks)
        scene.until("running")

    scene.measure("attach, with a named set" if ranks else "attach", act)
    time.sleep(TORCH_CHECK_DELAY_S)  # then every rank is asked of torch: this is no operation's
    scene.until("running")


def walk(scene: Scene) -> None:
    """Do once what a user does in a session, from the first attach to the last leave."""
    attached(scene)
    breakpoints = [{"line": line} for line in LINES]
    nine = scene.ask("setBreakpoints", source={"path": PATH}, breakpoints=breakpoints)
    scene.measure("setBreakpoints", nine)
    scene.measure("breakpoint moved", lambda: scene.tell_rank("move"), event="breakpoint")
    scene.measure("output", lambda: scene.tell_rank(f"print {PRINTED}"), event="output")
    scene.measure(FIRST_STOP, lambda: scene.tell_rank("stop"), event="stopped")
    time.sleep(CLOCK_CHECK_DELAY_S)  # then every rank is asked of its time-outs
    scene.until("stopped")
    _look(scene)
    (row, *_) = scene.wire.ask("threads")["threads"]
    scene.measure("step", scene.ask("next", threadId=row["id"]), event="stopped")
    scene.until("stopped")
    scene.measure("continue", scene.ask("continue", threadId=row["id"]))
    scene.until("running")
    scene.measure("stop", lambda: scene.tell_rank("stop"), event="stopped")
    scene.until("stopped")


def _look(scene: Scene) -> None:
    for name, ask in {
        "list": scene.ask("list"),
        "threads": scene.ask("threads"),
        "cast": scene.ask("cast", **_ALL, command="p small"),
        "cast to a rank set": scene.ask("cast", ranks="stopped - ranks(::2)", command="p small"),
        "compare": scene.ask("compare", **_ALL, expression="small"),
        "watch": scene.ask("evaluate", expression="all small", context="watch"),
    }.items():
        scene.measure(name, ask, REPEATED)


def leave(scene: Scene) -> None:
    """Disconnect the client: every rank is left."""

    def act() -> None:
        scene.wire.ask("disconnect")
        while scene.connections():
            time.sleep(_LOOK_AGAIN)

    scene.measure("leaving", act)


def storm_floor(ranks: int) -> float:
    """Return the seconds of CPU to receive a rank's stop, and to count it."""
    with ExitStack() as stack:
        _, ports = stack.enter_context(helper("fake_ranks", ranks))
        pid, [port] = stack.enter_context(helper("floors", "broadcast", "small", FRAME, *ports))
        floor = Running(pid, port)
        rank = stack.enter_context(Wire(ports[0]))
        _rest(floor, FLOOR_REST, FLOOR_IDLE)
        before = floor.cpu
        rank.ask("evaluate", {"expression": "stop"})
        rank.event("stopped")
        _rest(floor, FLOOR_REST, FLOOR_IDLE)
        return (floor.cpu - before) / ranks


def handshake_floor(ranks: int) -> float:
    """Return the seconds of CPU to attach to a rank: the bytes are prepared."""
    with ExitStack() as stack:
        _, ports = stack.enter_context(helper("fake_ranks", ranks))
        pid, [port] = stack.enter_context(helper("floors", "handshake", PATH, LINES[0], *ports))
        bare = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        floor = Running(pid, port)
        before = floor.cpu
        round_of(bare)
        return (floor.cpu - before) / ranks


def round_of(floor: socket.socket) -> None:
    """Let a process of `tests.bench.floors` do once what it is for."""
    floor.sendall(b".")
    assert floor.recv(1) == b"."


def _rest(process: Running, rest: float, idle: float) -> None:
    """Wait until it has used no more CPU than `idle` for `rest`, both in seconds."""
    before = -1.0
    while process.cpu - before > idle:
        before = process.cpu
        time.sleep(rest)
