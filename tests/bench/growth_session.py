"""One session of many simulated ranks, and what each operation in it costs the session's process.

Ranks are told to stop and to print by a connection of our own to one of them, so that what the
session uses is for its ranks' events alone.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from dap_mux.session.session import CLOCK_CHECK_DELAY_S, TORCH_CHECK_DELAY_S
from tests.bench.attaching import attach
from tests.bench.processes import Running, helper, proxy
from tests.bench.wire import Json, Wire

FIRST_STOP: Final = "first stop"  # by which its thread is new to the session
PATH: Final = "/job/train.py"
LINES: Final = range(6, 15)
PRINTED: Final = 20  # lines that each rank prints
REPEATED: Final = 5  # times that what is short is asked
REST: Final = 0.1  # s without work, after which an operation is over
IDLE: Final = 0.002  # s of CPU in that time that count as none
_LOOK_AGAIN: Final = 0.01  # s
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_OTHER_FILES: Final = 64
_ALL: Final = {"ranks": "all"}


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
        before = -1.0
        while self.through.cpu - before > IDLE:
            before = self.through.cpu
            time.sleep(REST)

    @property
    def memory(self) -> int:
        """Resident bytes of the session's process."""
        return int(Path(f"/proc/{self.through.pid}/statm").read_text("ascii").split()[1]) * _PAGE

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
