"""`Wire`: messages over a pair of streams, numbered on the way out, handed on on the way in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from dap_mux.client.failures import ConnectionLost
from dap_mux.errors import PeerFault
from dap_mux.protocol.framing import Framer, encode_frame

Json = dict[str, Any]
Tap = Callable[[str, Json], None]
"""Sees every message: called with "sent" or "received" and the message."""

_CHUNK: Final = 64 * 1024


class Wire:
    """Reads until the server hangs up, the framing breaks or `close`; then `on_end` is told why."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_message: Callable[[Json], None],
        on_end: Callable[[BaseException], None],
        tap: Tap | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_message = on_message
        self._on_end = on_end
        self._tap = tap
        self._framer = Framer()
        self._seq = 0
        self._reading = asyncio.get_running_loop().create_task(self._read())
        self._reading.add_done_callback(self._ended)

    def write(self, message: Json) -> int:
        """Send `message` behind the next `seq`, and return that; never waits."""
        self._seq += 1
        message = {"seq": self._seq, **message}
        if self._tap is not None:
            self._tap("sent", message)
        self._writer.write(encode_frame(msgspec.json.encode(message)))
        return self._seq

    async def close(self) -> None:
        """Stop reading, flush and close."""
        self._reading.cancel()
        await asyncio.wait([self._reading])
        self._writer.close()
        with contextlib.suppress(OSError):  # the server was faster: closed is what was asked for
            await self._writer.wait_closed()

    async def _read(self) -> None:
        while data := await self._reader.read(_CHUNK):
            for body in self._framer.feed(data):
                self._take(body)
        raise ConnectionLost("the server closed the connection")

    def _take(self, body: bytes) -> None:
        try:
            self._receive(msgspec.json.decode(body, type=Json))
        except (msgspec.MsgspecError, AttributeError, KeyError, TypeError) as error:
            shape = f"{type(error).__name__}: {error}"
            raise PeerFault(f"a message of unexpected shape ({shape})") from error

    def _receive(self, message: Json) -> None:
        if self._tap is not None:
            self._tap("received", message)
        self._on_message(message)

    def _ended(self, reading: asyncio.Task[None]) -> None:
        failure = None if reading.cancelled() else reading.exception()
        if isinstance(failure, OSError):
            failure = ConnectionLost(f"the connection broke: {failure.strerror or failure}")
        self._on_end(failure or ConnectionLost("this client was closed"))
