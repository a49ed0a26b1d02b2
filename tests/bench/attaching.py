"""The handshake that every client does, and getting to a stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.bench.wire import Json, Wire

ABOUT: Final[Json] = {
    "clientID": "vscode",
    "adapterID": "debugpy",
    "linesStartAt1": True,
    "columnsStartAt1": True,
    "pathFormat": "path",
}
ATTACH: Final[Json] = {"justMyCode": True}


def attach(
    wire: Wire, path: str, lines: Sequence[int] = (), *, rows: bool = True, ranks: str = ""
) -> None:
    """Attach with breakpoints on these lines; done when a thread is there.

    The proxy answers `attach` before that: it never waits for absent ranks. `rows`: whether it
    tells of threads, which it leaves where many are shown as classes. `ranks`: a set that is given
    a name, by which the breakpoints are for those ranks only.
    """
    wire.ask("initialize", ABOUT)
    attached = wire.send("attach", ATTACH)
    wire.event("initialized")
    if ranks:
        wire.ask("groups", {"define": {"name": "some", "ranks": ranks}})
    condition = {"condition": "@some: True"} if ranks else {}
    breakpoints = [{"line": line, **condition} for line in lines]
    wire.ask("setBreakpoints", {"source": {"path": path}, "breakpoints": breakpoints})
    wire.send("configurationDone")
    wire.answer(attached)
    if rows:
        wire.event("thread")


def stopped_frame(wire: Wire) -> int:
    """Wait for a stop; return the id of its top frame."""
    thread = wire.event("stopped")["threadId"]
    wire.ask("threads")
    frames = wire.ask("stackTrace", {"threadId": thread, "startFrame": 0, "levels": 20})
    return int(frames["stackFrames"][0]["id"])
