"""The least that some operations cost a Python process, for each simulated rank."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import Final

from tests.bench.growth_session import LINES, PATH
from tests.bench.processes import Running, helper
from tests.bench.wire import Wire

_REST: Final = 0.3  # s without work, after which a storm is over
_FRAME: Final = 2
_IDLE: Final = 0.001  # s of CPU in that time that count as none


def storm_floor(ranks: int) -> float:
    """Return the seconds of CPU to receive a rank's stop, and to count it."""
    with ExitStack() as stack:
        _, ports = stack.enter_context(helper("fake_ranks", ranks))
        pid, [port] = stack.enter_context(helper("count_only", "small", _FRAME, *ports))
        floor = Running(pid, port)
        rank = stack.enter_context(Wire(ports[0]))
        _rest(floor)
        before = floor.cpu
        rank.ask("evaluate", {"expression": "stop"})
        rank.event("stopped")
        _rest(floor)
        return (floor.cpu - before) / ranks


def handshake_floor(ranks: int) -> float:
    """Return the seconds of CPU to attach to a rank: the bytes are prepared."""
    with ExitStack() as stack:
        _, ports = stack.enter_context(helper("fake_ranks", ranks))
        pid, [port] = stack.enter_context(helper("bare_handshake", PATH, LINES[0], *ports))
        bare = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        floor = Running(pid, port)
        before = floor.cpu
        bare.sendall(b".")
        assert bare.recv(1) == b"."
        return (floor.cpu - before) / ranks


def _rest(process: Running) -> None:
    before = -1.0
    while process.cpu - before > _IDLE:
        before = process.cpu
        time.sleep(_REST)
