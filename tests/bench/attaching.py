"""Real ranks attached: all of them at once, beside a bare client or beside debugpy's own ranks."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import closing
from statistics import median
from time import perf_counter
from typing import Any, Final

from tests.bench.figures import Figure, ahead, at_most
from tests.bench.processes import Job, RealRanks, agents, proxy, real_ranks, script, stock
from tests.bench.wire import ABOUT, ATTACH, Wire, attach_all

RANKS: Final = 32
ROUNDS: Final = 7
BARE_BOUND: Final = 1.3
REST: Final = 0.5  # s that an adapter needs between two connections
_BREAKPOINTS: Final = [{"line": 1000}]  # past the end, where nobody stops
RUN_RANKS: Final = 64
RUN_ROUNDS: Final = 3
ANSWERS: Final = 5  # of each rank, a round
RUN_REST: Final = 1.0  # s between two clients: released ranks call again, or their adapter rests
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


def attach32() -> Iterator[Figure]:
    """32 real ranks attached: through dap-mux, and by a bare asyncio client's 32 handshakes.

    The same ranks are attached by both in turns, after one round to warm them up.
    """
    with real_ranks(RANKS) as ranks:
        ours, bare = [], []
        for turn in range(1 + ROUNDS):
            seconds = _ours(ranks), asyncio.run(_bare(ranks))
            if turn:
                ours.append(seconds[0])
                bare.append(seconds[1])
        name = f"attach {RANKS} ranks"
        yield at_most(name, median(ours), median(bare), BARE_BOUND, "bare client")


def _ours(ranks: RealRanks) -> float:
    with proxy(ranks.ports) as through, Wire(through.port) as wire:
        seconds = attach_all(wire, RANKS, _set_breakpoints(ranks))
    time.sleep(REST)
    return seconds


def _set_breakpoints(ranks: RealRanks) -> dict[str, Any]:
    return {"source": {"path": ranks.path}, "breakpoints": _BREAKPOINTS}


async def _bare(ranks: RealRanks) -> float:
    clients = [Bare(port) for port in ranks.ports]
    start = perf_counter()
    await asyncio.gather(*(client.attach(ranks) for client in clients))
    seconds = perf_counter() - start
    await asyncio.gather(*(client.leave() for client in clients))
    await asyncio.sleep(REST)
    return seconds


class Bare:
    """The least that attaches a rank."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._seq = 0

    async def attach(self, ranks: RealRanks) -> None:
        """Connect, and shake hands; done when `attach` is answered."""
        streams = await asyncio.open_connection("127.0.0.1", self._port)
        self._reader, self._writer = streams
        await self._until("response", self._send("initialize", ABOUT))
        attached = self._send("attach", {**ATTACH, "subProcess": False})
        await self._until("event", "initialized")
        await self._until("response", self._send("setBreakpoints", _set_breakpoints(ranks)))
        self._send("configurationDone", {})
        await self._until("response", attached)

    async def leave(self) -> None:
        """`disconnect`, its response, then EOF: an adapter needs that order."""
        with closing(self._writer):
            await self._until("response", self._send("disconnect", {}))

    def _send(self, command: str, arguments: dict[str, Any]) -> int:
        self._seq += 1
        body = {"seq": self._seq, "type": "request", "command": command, "arguments": arguments}
        text = json.dumps(body).encode()
        self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(text), text))
        return self._seq

    async def _until(self, kind: str, wanted: object) -> None:
        while True:
            header = await self._reader.readuntil(b"\r\n\r\n")
            body = await self._reader.readexactly(int(header.split(b":")[1]))
            message = json.loads(body)
            if message["type"] == kind and wanted in (
                message.get("request_seq"),
                message.get("event"),
            ):
                return


def default() -> Iterator[Figure]:
    """Ranks as `dap-mux run` starts them beside ranks as debugpy comes: 64 of each, in one run.

    They run the same loop; a rank of debugpy's own has an adapter, a process of its own, beside it.
    Attaching is from the client's `attach` until all ranks are live, several times; the first is to
    warm up. Both through a session; `evaluate` beside a client that is connected to debugpy itself,
    too.
    """
    with (
        script(_SCRIPT) as path,
        agents(RUN_RANKS, path, "--view", "ranks", wait=False) as of_run,
        stock(RUN_RANKS, path, "--view", "ranks") as of_debugpy,
    ):
        jobs = of_run, of_debugpy
        times: list[Times] = [([], []), ([], [])]
        for turn in range(1 + RUN_ROUNDS):
            for job, (attached, answered) in zip(jobs, times, strict=True):
                seconds, answers = _turn(job)
                if turn:
                    attached.append(seconds)
                    answered.extend(answers)
        (ours, ours_answer), (theirs, theirs_answer) = times
        name = f"attach {RUN_RANKS} ranks of run"
        yield ahead(name, median(ours), median(theirs), "debugpy's")
        name = "evaluate, a rank of run, p50"
        yield ahead(name, median(ours_answer), median(theirs_answer), "debugpy's")
        yield _memory(*(job.memory for job in jobs))


def _turn(job: Job) -> tuple[float, list[float]]:
    """Attach, ask every rank in turn, leave; the seconds of the first, and of each answer."""
    with Wire(job.session.port) as wire:
        seconds = attach_all(wire, RUN_RANKS)
        casts = [
            wire.timed("cast", {"ranks": str(rank % RUN_RANKS), "command": "p 1 + 1"}).seconds
            for rank in range(ANSWERS * RUN_RANKS)
        ]
        wire.ask("disconnect")
    time.sleep(RUN_REST)
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
