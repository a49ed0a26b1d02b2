"""A client as small as an editor's socket: blocking, no tricks, the clock around it.

With the handshake that every client does, and ways to get to a stop, or to all ranks.
"""

from __future__ import annotations

import json
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from dap_mux.pure.protocol.messages import encode_frame

if TYPE_CHECKING:
    from typing_extensions import Self

Json = dict[str, Any]
LIMIT: Final = 60.0  # s for any answer
_HEADER_END: Final = b"\r\n\r\n"
_RECEIVE: Final = 1 << 16
_LOOK_AGAIN: Final = 0.05  # s between two tries to connect


class Envelope(msgspec.Struct, gc=False):
    """As much of a message as tells what it answers."""

    type: str
    event: str = ""
    request_seq: int = 0
    success: bool = True
    message: str = ""
    body: msgspec.Raw = msgspec.Raw()


_decode: Final = msgspec.json.Decoder(Envelope).decode


class Timed(NamedTuple):
    """A body, and the seconds from writing the request to having all of its answer."""

    seconds: float
    body: Json


class Connection:
    """A socket to this port, as soon as somebody listens there; `with` closes it."""

    def __init__(self, port: int) -> None:
        self._socket = _connected(port)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._socket.close()


def _connected(port: int) -> socket.socket:
    deadline = time.monotonic() + LIMIT
    while True:
        with suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port), LIMIT)
        assert time.monotonic() < deadline, f"nobody listens on port {port}"
        time.sleep(_LOOK_AGAIN)


class Wire(Connection):
    """One client. Events are kept until somebody waits for them."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self._buffer = bytearray()
        self._seq = 0
        self.arrived = 0.0  # when the last message was whole, by `perf_counter`
        self._events: deque[tuple[str, Json]] = deque()

    def send(self, command: str, arguments: Json | None = None) -> int:
        """Write a request; return its `seq`."""
        self._socket.sendall(self._request(command, arguments))
        return self._seq

    def _request(self, command: str, arguments: Json | None) -> bytes:
        self._seq += 1
        request = {"seq": self._seq, "type": "request", "command": command}
        return encode_frame(json.dumps({**request, "arguments": arguments or {}}).encode())

    def ask(self, command: str, arguments: Json | None = None) -> Json:
        """Return the body of the answer."""
        return self.timed(command, arguments).body

    def timed(self, command: str, arguments: Json | None = None) -> Timed:
        """Ask, with the clock running from the first byte out to the last byte in."""
        request = self._request(command, arguments)
        start = perf_counter()
        self._socket.sendall(request)
        message, end = self._answer(self._seq)
        return Timed(end - start, _body(message))

    def evaluate(self, expression: str, frame: int) -> float:
        """Return the seconds until a watch expression has its value."""
        asked = {"expression": expression, "frameId": frame, "context": "watch"}
        return self.timed("evaluate", asked).seconds

    def until_all(self, ranks: int, state: str) -> None:
        """Ask until so many ranks are in this state."""
        while self.ask("list")["counts"].get(state) != ranks:
            pass

    def answer(self, seq: int) -> None:
        """Wait for the answer to a request that was only sent."""
        self._answer(seq)

    def _answer(self, seq: int) -> tuple[Envelope, float]:
        while True:
            message, end = self._receive()
            if message.type == "response" and message.request_seq == seq:
                assert message.success, message.message
                return message, end

    def event(self, name: str, holds: Callable[[Json], bool] = lambda body: True) -> Json:
        """Return the body of the next such event; earlier ones of its kind are dropped.

        Those of other kinds are kept: a rank's `stopped` may come before its `thread`.
        """
        others: list[tuple[str, Json]] = []
        while True:
            while not self._events:
                self._receive()
            event, body = self._events.popleft()
            if event == name and holds(body):
                self._events.extendleft(reversed(others))
                return body
            if event != name:
                others.append((event, body))

    def drain(self) -> None:
        """Forget the events that have come so far."""
        self._events.clear()

    def _receive(self) -> tuple[Envelope, float]:
        while (length := self._whole()) < 0:
            data = self._socket.recv(_RECEIVE)
            assert data, "the connection was closed"
            self._buffer += data
        end = self.arrived = perf_counter()
        start = self._buffer.index(_HEADER_END) + len(_HEADER_END)
        message = _decode(bytes(self._buffer[start : start + length]))
        del self._buffer[: start + length]
        if message.type == "event":
            self._events.append((message.event, _body(message)))
        return message, end

    def _whole(self) -> int:
        """Return the length of the first body if it is whole, else -1."""
        end = self._buffer.find(_HEADER_END)
        if end < 0:
            return -1
        length = int(self._buffer[:end].rsplit(b":", 1)[1])
        return length if len(self._buffer) >= end + len(_HEADER_END) + length else -1


def _body(message: Envelope) -> Json:
    return msgspec.json.decode(message.body, type=Json) if message.body else {}


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


def attach_all(wire: Wire, ranks: int, breakpoints: Json | None = None) -> float:
    """Attach; return the seconds from `attach` until all ranks are live."""
    wire.ask("initialize", ABOUT)
    start = perf_counter()
    wire.send("attach", ATTACH)
    wire.event("initialized")
    if breakpoints:
        wire.ask("setBreakpoints", breakpoints)
    wire.send("configurationDone")
    for _ in range(ranks):
        wire.event("thread", lambda body: body["reason"] == "started")
    return perf_counter() - start
