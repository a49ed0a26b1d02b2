"""The least that some things cost in Python, each a process of its own on the proxy's event loop.

`python -m tests.bench.floors KIND WORDS...` prints the list of the one port that it listens on:

- `forward PORT` forwards bytes from there to that port: the least a proxy can cost.
- `broadcast EXPRESSION FRAME PORT...` connects to ranks on these ports. Each byte that it receives
  starts a round: prepared bytes go to every rank, and the answers are counted.
- `handshake PATH LINE PORT...` attaches to ranks on these ports when it receives a byte: it does
  with each what a session does, prepared bytes when they are due. It knows one kind of rank and no
  fault.

A byte comes back from the last two when all ranks have answered.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, cast

import anyio

from dap_mux.pure.protocol.messages import Framer, Request, decode, encode, encode_frame

LOCAL: Final = "127.0.0.1"
_HEAD: Final = b"Content-Length"


class Line(asyncio.Protocol):
    """One connection, of which no byte waits for others."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self.transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Half(Line):
    """One side of a connection; bytes go to the other as they come."""

    def __init__(self, other: Half | None = None) -> None:
        self.other = other
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        super().connection_made(transport)
        if self.other:
            self.other.joined(self)

    def joined(self, other: Half) -> None:
        """The far side is connected too."""
        self.other = other
        other.transport.writelines(self._early)

    def data_received(self, data: bytes) -> None:
        """Pass on."""
        if self.other:
            self.other.transport.write(data)
        else:
            self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other side too."""
        if self.other:
            self.other.transport.close()


class Counter:
    """How many messages have come since the round began, and whom to tell when all have."""

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.count = 0
        self.done = asyncio.Event()

    def add(self, number: int) -> None:
        """So many more."""
        self.count += number
        if self.count == self.expected:
            self.count = 0
            self.done.set()


class Counted(Line):
    """One connection to a rank, whose messages are counted."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def data_received(self, data: bytes) -> None:
        """Count, and read nothing."""
        self._counter.add(data.count(_HEAD))


class Attached(Line):
    """One connection to a rank, from its beginning to the answer to `attach`."""

    def __init__(self, requests: list[bytes], attached: asyncio.Semaphore) -> None:
        self._requests = requests
        self._attached = attached
        self._framer = Framer()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        super().connection_made(transport)
        self.transport.write(self._requests[0])

    def data_received(self, data: bytes) -> None:
        """Say what is due."""
        for body in self._framer.feed(data):
            message = decode(body)
            self._hear(message.event or message.command)

    def _hear(self, name: str) -> None:
        if name == "initialize":
            self.transport.write(self._requests[1])
        elif name == "initialized":
            self.transport.write(self._requests[2] + self._requests[3])
        elif name == "evaluate":
            self.transport.write(self._requests[4])
        elif name == "attach":
            self._attached.release()


class Starter(asyncio.Protocol):
    """The connection over which rounds are asked for."""

    def __init__(self, begin: Callable[[], object], end: Callable[[], Awaitable[object]]) -> None:
        self._begin = begin
        self._end = end
        self._rounds: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody wants rounds."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """One round."""
        self._begin()
        task = asyncio.get_running_loop().create_task(self._answer())
        self._rounds.add(task)
        task.add_done_callback(self._rounds.discard)

    async def _answer(self) -> None:
        await self._end()
        self._transport.write(b".")


async def forward(port: str) -> None:
    """Accept for ever; each connection gets one of its own to `port`."""
    loop = asyncio.get_running_loop()
    connecting: set[asyncio.Task[object]] = set()

    class Near(Half):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            task = loop.create_task(loop.create_connection(lambda: Half(self), LOCAL, int(port)))
            connecting.add(task)
            task.add_done_callback(connecting.discard)

    await _listen(Near)


async def broadcast(expression: str, frame: str, *ports: str) -> None:
    """Serve rounds for ever."""
    loop = asyncio.get_running_loop()
    counter = Counter(len(ports))  # a fake rank says something by itself
    links = [
        (await loop.create_connection(lambda: Counted(counter), LOCAL, int(port)))[1]
        for port in ports
    ]
    await counter.done.wait()
    arguments = {"expression": expression, "frameId": int(frame), "context": "watch"}
    question = encode_frame(encode(Request(9, "evaluate", arguments)))

    def ask() -> None:
        counter.done.clear()
        for link in links:
            link.transport.write(question)

    await _listen(lambda: Starter(ask, counter.done.wait))


async def handshake(path: str, line: str, *ports: str) -> None:
    """Serve attaches for ever."""
    requests = _requests(path, int(line))
    loop = asyncio.get_running_loop()
    links: list[object] = []

    async def attach() -> None:
        attached = asyncio.Semaphore(0)
        made = (
            loop.create_connection(lambda: Attached(requests, attached), LOCAL, int(port))
            for port in ports
        )
        links.extend(await asyncio.gather(*made))
        for _ in ports:
            await attached.acquire()

    await _listen(lambda: Starter(lambda: None, attach))


def _requests(path: str, line: int) -> list[bytes]:
    """Return the frames of the requests that a rank gets, in order."""
    from dap_mux.engine.ranks.handshake import INITIALIZE_ARGUMENTS
    from dap_mux.engine.ranks.patching import attach_expression
    from dap_mux.session.session import injected_sources
    from tests.bench.wire import ATTACH

    patches = attach_expression(injected_sources(), debug_children=False)
    breakpoints = {"source": {"path": path}, "breakpoints": [{"line": line}], "lines": [line]}
    requests = {
        "initialize": INITIALIZE_ARGUMENTS,
        "attach": ATTACH,
        "evaluate": {"expression": patches, "context": "watch"},
        "setBreakpoints": breakpoints,
        "configurationDone": {},
    }
    return [
        encode_frame(encode(Request(seq, command, arguments)))
        for seq, (command, arguments) in enumerate(requests.items(), 1)
    ]


async def _listen(protocol: Callable[[], asyncio.Protocol]) -> None:
    server = await asyncio.get_running_loop().create_server(protocol, LOCAL, 0)
    print(json.dumps([server.sockets[0].getsockname()[1]]), flush=True)
    await server.serve_forever()


KINDS: Final[Mapping[str, Callable[..., Awaitable[None]]]] = {
    "forward": forward,
    "broadcast": broadcast,
    "handshake": handshake,
}

if __name__ == "__main__":
    options = {"use_uvloop": True}  # as the proxy
    serve = KINDS[sys.argv[1]]
    anyio.run(serve, *sys.argv[2:], backend="asyncio", backend_options=options)
