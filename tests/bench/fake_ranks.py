"""Ranks that cost next to nothing: debugpy's handshake, then prepared answers at once.

`python -m tests.bench.fake_ranks N` prints the list of the N ports that they listen on; FAKE_PATH
and FAKE_LINE in the environment are where they stand when they stop. What an `evaluate` is answered
with, and what happens beside it, is its expression: a name in `VALUES`, `own` (a value that no
other rank has), `event` (one comes soon, with the time when it was sent), `stop` (every rank
stops), `move` (every rank's last breakpoint goes to the next line) or `print 1000` (every rank
prints that many lines). A rank that is told to step stops at once. As real ones that are patched
do, they say so, and send the stack with a stop.
`connections` asks how many there are, with the asker's.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from time import perf_counter
from typing import Any, Final, cast

import anyio

from dap_mux.pure.protocol.messages import Framer, Message, decode, encode_frame, plain

PATCH: Final = "own['attach']"  # in the expression that patches a rank
_ASKS_STACKS: Final = "def stacks(every_thread"  # in the one that asks a rank where it is
_PLACES: Final = 8  # at which ranks are
_STEPS: Final = frozenset({"next", "stepIn", "stepOut"})
_SOON: Final = 0.001  # s
_PATH: Final = os.environ.get("FAKE_PATH", "/job/train.py")
_LINE: Final = int(os.environ.get("FAKE_LINE", "6"))
_TENSOR: Final = ("array([[0.12345678, 1.5, -2.25e-05, 'a\"b']],\n" * 200)[:6000]


def _packed(body: Any) -> bytes:
    return json.dumps(body).encode()


def _value(text: str, reference: int = 0) -> bytes:
    return _packed({"result": text, "type": "str", "variablesReference": reference})


VALUES: Final = {
    "small": _value("x" * 100),
    "large": _value(_TENSOR),
    "object": _value(_TENSOR, 7),
}
_PATCHED: Final = _value("True True 4242:17")  # all of the patches, and which process it is
NOTHING: Final = _value("{}")  # what our own expressions find


def _stacks(place: int) -> bytes:
    """Return what a rank says of its stack, 20 frames deep, whose innermost ones differ."""
    frames = [[0, depth % 4, 10 + depth] for depth in range(17)]
    frames += [[place % 2, 3, 40 + place + depth] for depth in range(3)]
    files = [[_PATH, False], ["/usr/lib/python3/site-packages/torch/nn.py", True]]
    functions = ["<module>", "main", "train", "forward"]
    told = {"files": files, "functions": functions, "threads": [["MainThread", True, frames]]}
    return _value(json.dumps(told))


_STACKS: Final = [_stacks(place) for place in range(_PLACES)]
_VARIABLES: Final = [
    {"name": f"x{n}", "value": "y" * 60, "type": "list", "variablesReference": n + 1}
    for n in range(45)
]
_STACK: Final = [
    {"id": 2 + at, "name": name, "line": line, "column": 1, "source": {"path": _PATH}}
    for at, (name, line) in enumerate({"train": _LINE, "main": 40, "<module>": 52}.items())
]
_BODIES: Final = {
    "initialize": _packed({"supportsConfigurationDoneRequest": True}),
    "threads": _packed({"threads": [{"id": 1, "name": "MainThread"}]}),
    "stackTrace": _packed({"stackFrames": _STACK, "totalFrames": len(_STACK)}),
    "variables": _packed({"variables": _VARIABLES}),
}
_STOP: Final = {"threadId": 1, "preserveFocusHint": False, "allThreadsStopped": True}
_PLACE: Final = {"stackFrames": _STACK, "lineText": "x = 1", "threadName": "MainThread"}
_EVENTS: Final = {
    "debugpySockets": {"sockets": [{"host": "127.0.0.1", "port": 5678, "internal": True}]},
    "stopped": {"reason": "breakpoint", **_STOP, **_PLACE},
    "stepped": {"reason": "step", **_STOP, **_PLACE},
    "output": {"category": "stdout", "output": "step 17, loss 0.25\n", "source": {}},
    "thread": {"reason": "started", "threadId": 1},
}


class FakeRank(asyncio.Protocol):
    """One connection."""

    everyone: Final[set[FakeRank]] = set()
    numbers: Final[dict[int, int]] = {}
    """Which rank it is, by its port."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come: debugpy speaks first."""
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport = cast("asyncio.Transport", transport)
        self._port: int = sock.getsockname()[1]
        self._framer = Framer()
        self._attach = self._breakpoints = self._line = 0
        self._answers = self._encoded()
        self.everyone.add(self)
        self.say("debugpySockets")

    @staticmethod
    def _encoded() -> dict[str, bytes]:
        return {name: b',"body":' + body for name, body in _BODIES.items()}

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        self.everyone.discard(self)

    def data_received(self, data: bytes) -> None:
        """Answer each request at once."""
        for body in self._framer.feed(data):
            request = decode(body)
            if request.command == "evaluate":
                self._evaluate(request)
            else:
                self._handle(request)

    def _evaluate(self, request: Message) -> None:
        expression = plain(request.arguments)["expression"]
        name, _, count = expression.partition(" ")
        own = _value(f"{self._port} {'x' * 200}") if name == "own" else b""
        body = VALUES.get(name) or own or self._told(expression)
        self._answer(request.seq, "evaluate", b',"body":' + body)
        if name == "stop":
            self._everyone_says("stopped", 1)
        elif name == "print":
            self._everyone_says("output", int(count))
        elif name == "move":
            for rank in self.everyone:
                rank.move_breakpoint()
        elif name == "event":
            asyncio.get_running_loop().call_later(_SOON, self._say_the_time)

    def _told(self, expression: str) -> bytes:
        """Answer what the session asks by itself."""
        if PATCH in expression:
            return _PATCHED
        return _STACKS[self._port % _PLACES] if _ASKS_STACKS in expression else NOTHING

    def _say_the_time(self) -> None:
        """An event by itself, on an idle connection; the clock is the same in every process."""
        module = {"id": 1, "name": "train", "path": "x" * 100}
        self._write_event("module", {"reason": "changed", "module": module, "sent": perf_counter()})

    def _everyone_says(self, event: str, times: int) -> None:
        for rank in self.everyone:
            rank.say(event, times)

    def _handle(self, request: Message) -> None:
        command = request.command
        if command == "attach":
            self._attach = request.seq
            self.say("initialized")
            return
        if command == "setBreakpoints":
            self._set_breakpoints(request)
            return
        if command == "connections":
            self._answer(request.seq, command, b',"body":' + _packed({"count": len(self.everyone)}))
            return
        self._answer(request.seq, command, self._answers.get(command, b""))
        if command in _STEPS:
            self.say("stopped", body=_EVENTS["stepped"])
        elif command == "configurationDone":
            self._answer(self._attach, "attach", b"")
            self.say("thread")
        elif command == "disconnect":
            self._transport.close()

    def _set_breakpoints(self, request: Message) -> None:
        """Answer as debugpy does: ids that count on, each on the line that it was asked for."""
        wanted = plain(request.arguments)
        states = []
        for each in wanted["breakpoints"]:
            self._breakpoints += 1
            self._line = each["line"]
            known = {"id": self._breakpoints, "source": wanted["source"], "line": self._line}
            states.append({"verified": True, **known})
        body = _packed({"breakpoints": states})
        self._answer(request.seq, request.command, b',"body":' + body)

    def move_breakpoint(self) -> None:
        """Say that the last breakpoint has gone to the next line, as when its file is loaded."""
        if self._breakpoints:
            self._line += 1
            state = {"id": self._breakpoints, "verified": True, "line": self._line}
            self.say("breakpoint", body={"reason": "changed", "breakpoint": state})

    def say(self, event: str, times: int = 1, body: Any = None) -> None:
        """Send an event, so many times, each a frame of its own."""
        self._write_event(event, body or _EVENTS.get(event, {}), times)

    def _write_event(self, event: str, body: Any, times: int = 1) -> None:
        text = _packed({"seq": 1, "type": "event", "event": event, "body": body})
        self._transport.write(encode_frame(text) * times)

    def _answer(self, seq: int, command: str, body: bytes) -> None:
        head = f'{{"seq":1,"type":"response","request_seq":{seq},"success":true,"command":'
        self._transport.write(encode_frame(f'{head}"{command}"'.encode() + body + b"}"))


async def serve(count: int, kind: type[FakeRank] = FakeRank) -> None:
    """Listen on `count` ports for ever."""
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(kind, "127.0.0.1", 0) for _ in range(count)]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    kind.numbers.update((port, number) for number, port in enumerate(ports))
    print(json.dumps(ports), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    anyio.run(serve, int(sys.argv[1]), backend="asyncio", backend_options={"use_uvloop": True})
