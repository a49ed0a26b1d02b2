"""A session of which a test says every word: for clients that are to hear something particular."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from dap_mux.pure.protocol.messages import Framer, encode_frame

Json = dict[str, Any]
_KEYS: Final = (
    "worker coords host pid endpoint reason thread function module path line threadId exitCode"
).split()


def list_row(rank: int, state: str = "running", **known: object) -> Json:
    """One row of the answer to `list`; what is not known is null."""
    return {**dict.fromkeys(_KEYS), "rank": rank, "group": "job", "state": state, **known}


class ScriptedServer:
    """Keeps what its clients have sent, and answers when told.

    What is said to one read of a client's goes out in one piece.
    """

    def __init__(self) -> None:
        self.received: list[Json] = []
        self.on_request: Callable[[Json], None] = lambda message: None
        self.gone = asyncio.Event()
        """Set when a client has hung up."""
        self._seq = 0
        self._said = b""
        self._reads = False
        self._writer: asyncio.StreamWriter | None = None

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen until the block is left; yield the port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer, framer = writer, Framer()
        while data := await reader.read(4096):
            self._reads = True
            for body in framer.feed(data):
                message = msgspec.json.decode(body, type=Json)
                self.received.append(message)
                self.on_request(message)
            self._reads = False
            self.raw(b"")
        writer.close()
        self.gone.set()

    def answers(self, answers: Mapping[str, Any]) -> None:
        """Answer each command so from now on, with an empty body without; a text is a refusal."""

        def answer(request: Json) -> None:
            said = answers.get(request["command"], {})
            refused = isinstance(said, str)
            self.answer(request, success=not refused, **{"message" if refused else "body": said})

        self.on_request = answer

    def say(self, **message: object) -> None:
        """Say a whole message, but for its `seq`."""
        self._seq += 1
        self.raw(encode_frame(msgspec.json.encode({"seq": self._seq, **message})))

    def event(self, name: str, **body: object) -> None:
        """Send an event."""
        self.say(type="event", event=name, body=body)

    def answer(self, to: Json, *, success: bool = True, **more: object) -> None:
        """Answer a request."""
        same = {"request_seq": to["seq"], "command": to["command"]}
        self.say(type="response", success=success, **same, **more)

    def raw(self, data: bytes) -> None:
        """Send bytes."""
        assert self._writer is not None
        self._said += data
        if not self._reads:
            self._writer.write(self._said)
            self._said = b""

    def hang_up(self) -> None:
        """End the connection."""
        assert self._writer is not None
        self._writer.close()
