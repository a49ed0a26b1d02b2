"""32 real ranks attached: through dap-mux, and by a bare asyncio client's 32 handshakes.

The same ranks are attached by both in turns, after one round to warm them up.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import closing
from statistics import median
from time import perf_counter
from typing import Any, Final

from tests.bench.attaching import ABOUT, ATTACH
from tests.bench.figures import Figure, at_most
from tests.bench.processes import proxy
from tests.bench.real_ranks import RealRanks, real_ranks
from tests.bench.wire import Wire

RANKS: Final = 32
ROUNDS: Final = 7
BOUND: Final = 1.3
REST: Final = 0.5  # s that an adapter needs between two connections
_BREAKPOINTS: Final = [{"line": 1000}]  # past the end, where nobody stops


def run() -> Iterator[Figure]:
    """Measure from `attach` until all ranks are live."""
    with real_ranks(RANKS) as ranks:
        ours, bare = [], []
        for turn in range(1 + ROUNDS):
            seconds = _ours(ranks), asyncio.run(_bare(ranks))
            if turn:
                ours.append(seconds[0])
                bare.append(seconds[1])
        name = f"attach {RANKS} ranks"
        yield at_most(name, median(ours), median(bare), BOUND, "bare client")


def _ours(ranks: RealRanks) -> float:
    with proxy(ranks.ports) as through, Wire(through.port) as wire:
        wire.ask("initialize", ABOUT)
        start = perf_counter()
        wire.send("attach", ATTACH)
        wire.event("initialized")
        wire.ask("setBreakpoints", _set_breakpoints(ranks))
        wire.send("configurationDone")
        for _ in range(RANKS):
            wire.event("thread", lambda body: body["reason"] == "started")
        seconds = perf_counter() - start
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
