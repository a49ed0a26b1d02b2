"""The least that attaching costs in Python: prepared bytes to every rank, each when it is due.

`python -m tests.bench.bare_handshake PATH LINE PORT...` prints the list of the one port where a
byte that it receives starts it: it connects to ranks on these ports and does with each what a
session does. A byte comes back when all are attached. It knows one kind of rank and no fault.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Final, cast

import anyio

from dap_mux.engine.ranks.attach_expression import attach_expression
from dap_mux.engine.ranks.handshake import INITIALIZE_ARGUMENTS
from dap_mux.protocol.framing import Framer, encode_frame
from dap_mux.protocol.messages import Request, decode, encode
from dap_mux.session.injected_sources import injected_sources
from tests.bench.attaching import ATTACH

_CONFIGURED: Final = "configurationDone"


def _requests(path: str, line: int) -> list[bytes]:
    """Return the frames of the requests that a rank gets, in order."""
    patches = attach_expression(injected_sources(), debug_children=False)
    breakpoints = {"source": {"path": path}, "breakpoints": [{"line": line}], "lines": [line]}
    requests = {
        "initialize": INITIALIZE_ARGUMENTS,
        "attach": ATTACH,
        "evaluate": {"expression": patches, "context": "watch"},
        "setBreakpoints": breakpoints,
        _CONFIGURED: {},
    }
    return [
        encode_frame(encode(Request(seq, command, arguments)))
        for seq, (command, arguments) in enumerate(requests.items(), 1)
    ]


class Link(asyncio.Protocol):
    """One connection to a rank, from its beginning to the answer to `attach`."""

    def __init__(self, requests: list[bytes], attached: asyncio.Semaphore) -> None:
        self._requests = requests
        self._attached = attached
        self._framer = Framer()
        self._initialized = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._transport.write(self._requests[0])

    def data_received(self, data: bytes) -> None:
        """Say what is due."""
        for body in self._framer.feed(data):
            message = decode(body)
            self._hear(message.event or message.command)

    def _hear(self, name: str) -> None:
        if name == "initialize":
            self._transport.write(self._requests[1])
        elif name == "initialized":
            self._transport.write(self._requests[2] + self._requests[3])
        elif name == "evaluate":
            self._transport.write(self._requests[4])
        elif name == "attach":
            self._attached.release()


class Starter(asyncio.Protocol):
    """The connection over which it is started."""

    def __init__(self, requests: list[bytes], ports: list[int]) -> None:
        self._requests = requests
        self._ports = ports
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody will start it."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Attach to all."""
        self._tasks.add(asyncio.get_running_loop().create_task(self._attach()))

    async def _attach(self) -> None:
        loop = asyncio.get_running_loop()
        attached = asyncio.Semaphore(0)
        self._links = await asyncio.gather(
            *(
                loop.create_connection(lambda: Link(self._requests, attached), "127.0.0.1", port)
                for port in self._ports
            )
        )
        for _ in self._ports:
            await attached.acquire()
        self._transport.write(b".")


async def serve(path: str, line: int, ports: list[int]) -> None:
    """Serve for ever."""
    requests = _requests(path, line)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Starter(requests, ports), "127.0.0.1", 0)
    print(json.dumps([server.sockets[0].getsockname()[1]]), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[2:]]
    options = {"use_uvloop": True}  # as the proxy
    anyio.run(
        serve, sys.argv[1], numbers[0], numbers[1:], backend="asyncio", backend_options=options
    )
