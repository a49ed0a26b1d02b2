"""Ranks as `dap-mux run` starts them beside ranks as debugpy comes: 64 of each, in one run.

They run the same loop; a rank of debugpy's own has an adapter, a process of its own, beside it.
Attaching is from the client's `attach` until all ranks are live, several times; the first is to
warm up. Both through a session; `evaluate` beside a client that is connected to debugpy itself,
too.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Final

from tests.bench.agents import Job, agents, stock
from tests.bench.attaching import ABOUT, ATTACH
from tests.bench.figures import Figure, ahead
from tests.bench.wire import Wire

RANKS: Final = 64
ROUNDS: Final = 3
ANSWERS: Final = 5  # of each rank, a round
REST: Final = 1.0  # s between two clients: released ranks call again, or their adapter rests
MIB: Final = 1024 * 1024
MEMORY_BOUND: Final = 0.7
_SCRIPT: Final = """\
import os
import time

if "DEBUGPY_PORT" in os.environ:
    import debugpy

    debugpy.listen(("127.0.0.1", int(os.environ["DEBUGPY_PORT"])))
while True:
    time.sleep(0.2)
"""


Times = tuple[list[float], list[float]]  # attaching all ranks, and one answer


def run() -> Iterator[Figure]:
    """Measure both in turns."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        script = Path(folder) / "train.py"
        script.write_text(_SCRIPT, "utf-8")
        jobs = [
            stack.enter_context(agents(RANKS, script, "--view", "ranks", wait=False)),
            stack.enter_context(stock(RANKS, script, "--view", "ranks")),
        ]
        times: list[Times] = [([], []), ([], [])]
        for turn in range(1 + ROUNDS):
            for job, (attached, answered) in zip(jobs, times, strict=True):
                seconds, answers = _turn(job)
                if turn:
                    attached.append(seconds)
                    answered.extend(answers)
        (ours, ours_answer), (theirs, theirs_answer) = times
        name = f"attach {RANKS} ranks of run"
        yield ahead(name, median(ours), median(theirs), "debugpy's")
        name = "evaluate, a rank of run, p50"
        yield ahead(name, median(ours_answer), median(theirs_answer), "debugpy's")
        yield _memory(*(job.memory for job in jobs))


def _turn(job: Job) -> tuple[float, list[float]]:
    """Attach, ask every rank in turn, leave; the seconds of the first, and of each answer."""
    with Wire(job.session.port) as wire:
        wire.ask("initialize", ABOUT)
        start = perf_counter()
        wire.send("attach", ATTACH)
        wire.event("initialized")
        wire.send("configurationDone")
        for _ in range(RANKS):
            wire.event("thread", lambda body: body["reason"] == "started")
        seconds = perf_counter() - start
        casts = [
            wire.timed("cast", {"ranks": str(rank % RANKS), "command": "p 1 + 1"}).seconds
            for rank in range(ANSWERS * RANKS)
        ]
        wire.ask("disconnect")
    time.sleep(REST)
    return seconds, casts


def _memory(ours: int, theirs: int) -> Figure:
    """Resident memory of a rank, its adapter's with it."""
    ratio = ours / theirs
    return Figure(
        "memory of a rank of run",
        f"{ours / MIB:.1f} MiB",
        f"{theirs / MIB:.1f} MiB debugpy's",
        f"{ratio:.2f} x",
        f"<= {MEMORY_BOUND:g} x",
        ratio <= MEMORY_BOUND,
    )
