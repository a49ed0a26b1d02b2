"""The least that a broadcast costs in Python: prepared bytes to every rank, answers counted.

`python -m tests.bench.count_only EXPRESSION FRAME PORT...` connects to ranks on these ports and
prints the list of the one port where each byte it receives starts a round; a byte comes back when
every rank has answered.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Final, cast

import anyio

from dap_mux.protocol.framing import encode_frame
from dap_mux.protocol.messages import Request, encode

_HEAD: Final = b"Content-Length"
_HELLO: Final = 1  # messages that a fake rank sends by itself


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


class Link(asyncio.Protocol):
    """One connection to a rank."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self.transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """Count, and read nothing."""
        self._counter.add(data.count(_HEAD))


class Starter(asyncio.Protocol):
    """The connection over which rounds are asked for."""

    def __init__(self, links: list[Link], question: bytes, counter: Counter) -> None:
        self._links = links
        self._question = question
        self._counter = counter
        self._rounds: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody wants rounds."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """One round."""
        self._counter.done.clear()
        for link in self._links:
            link.transport.write(self._question)
        task = asyncio.get_running_loop().create_task(self._answer())
        self._rounds.add(task)
        task.add_done_callback(self._rounds.discard)

    async def _answer(self) -> None:
        await self._counter.done.wait()
        self._transport.write(b".")


async def serve(expression: str, frame: int, ports: list[int]) -> None:
    """Serve for ever."""
    loop = asyncio.get_running_loop()
    counter = Counter(len(ports) * _HELLO)
    links = [
        (await loop.create_connection(lambda: Link(counter), "127.0.0.1", port))[1]
        for port in ports
    ]
    await counter.done.wait()
    counter.expected = len(ports)
    arguments = {"expression": expression, "frameId": frame, "context": "watch"}
    question = encode_frame(encode(Request(9, "evaluate", arguments)))
    server = await loop.create_server(lambda: Starter(links, question, counter), "127.0.0.1", 0)
    print(json.dumps([server.sockets[0].getsockname()[1]]), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[2:]]
    options = {"use_uvloop": True}  # as the proxy
    anyio.run(
        serve, sys.argv[1], numbers[0], numbers[1:], backend="asyncio", backend_options=options
    )
