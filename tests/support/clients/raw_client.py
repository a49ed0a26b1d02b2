"""A client that sends whatever it is told to, and counts the answers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import anyio

from dap_mux.pure.protocol.messages import Framer, encode_frame

Json = dict[str, Any]


class RawClient:
    """One connection. `answers`: how many responses each request has got, by `seq`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.answers: Counter[int] = Counter()
        self.open = True
        self._reader = reader
        self._writer = writer
        self._framer = Framer()
        self._responses: dict[int, Json] = {}
        self._seq = 0

    @classmethod
    async def connect(cls, port: int) -> RawClient:
        """Connect to a session on this machine."""
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def send(self, command: str, arguments: object = None) -> int:
        """Send a request; return its `seq`."""
        self._seq += 1
        request = {"seq": self._seq, "type": "request", "command": command}
        body = json.dumps({**request, "arguments": arguments}).encode()
        self._writer.write(encode_frame(body))
        return self._seq

    async def answer(self, seq: int, *, within: float) -> Json | None:
        """Return the response to a request; None where the connection ends before."""
        with anyio.fail_after(within):
            while self.open and seq not in self._responses:
                self._take(await self._reader.read(65536))
        return self._responses.pop(seq, None)

    async def ask(self, command: str, arguments: object = None, *, within: float) -> Json | None:
        """Send a request and wait for its response."""
        return await self.answer(self.send(command, arguments), within=within)

    def _take(self, data: bytes) -> None:
        self.open = bool(data)
        for message in map(json.loads, self._framer.feed(data)):
            if message["type"] == "response":
                self.answers[message["request_seq"]] += 1
                self._responses[message["request_seq"]] = message

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
