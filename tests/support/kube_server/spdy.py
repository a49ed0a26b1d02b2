"""The server's half of SPDY/3.1, as far as `kubectl port-forward` speaks it.

Control frames (8 bytes: version, kind, flags and length) open and close streams, data frames
carry bytes. For each connection kubectl opens a stream for errors and one for data, whose headers
say the port and share a `requestid`. See the SPDY draft 3.1 and k8s.io/client-go/portforward.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

SYN_STREAM, SYN_REPLY, RST_STREAM, PING = 1, 2, 3, 6
FIN: Final = 1  # flag: the sender says no more on this stream
BLOCK: Final = 32 * 1024
Send: TypeAlias = Callable[[bytes], Awaitable[None]]
Connect: TypeAlias = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

# What both ends put before the first header block (SPDY/3, section 2.6.10.1).
_WORDS: Final = """options head post put delete trace accept accept-charset accept-encoding
accept-language accept-ranges age allow authorization cache-control connection content-base
content-encoding content-language content-length content-location content-md5 content-range
content-type date etag expect expires from host if-match if-modified-since if-none-match if-range
if-unmodified-since last-modified location max-forwards pragma proxy-authenticate
proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade
user-agent vary via warning www-authenticate method get status 200|OK version HTTP/1.1 url public
set-cookie keep-alive origin"""
_TAIL: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
    "503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00"
    " Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
    "application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
    "gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _counted(word: str) -> bytes:
    text = word.replace("|", " ").encode()
    return struct.pack(">I", len(text)) + text


DICTIONARY: Final = b"".join(map(_counted, _WORDS.split())) + _TAIL.encode()


@dataclass
class _Stream:
    """A data stream; None in the queue ends it."""

    port: int
    errors: int
    inbox: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)


class Spdy:
    """One session: `feed` takes what kubectl sends, `send` carries what we answer.

    `connect` opens a connection to a port inside the pod; an OSError is told to kubectl.
    """

    def __init__(self, send: Send, connect: Connect) -> None:
        self._send = send
        self._connect = connect
        self._buffer = b""
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(
            9, zlib.DEFLATED, 15, 9, zlib.Z_DEFAULT_STRATEGY, DICTIONARY
        )
        self._error_streams: dict[str, int] = {}
        self._streams: dict[int, _Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def feed(self, data: bytes) -> None:
        """Take bytes; act on each whole frame."""
        self._buffer += data
        while len(self._buffer) >= 8:
            first, second = struct.unpack(">II", self._buffer[:8])
            flags, end = second >> 24, 8 + (second & 0xFFFFFF)
            if len(self._buffer) < end:
                return
            body, self._buffer = self._buffer[8:end], self._buffer[end:]
            if first >> 31:
                await self._control(first & 0xFFFF, flags, body)
            else:
                self._data(first, flags, body)

    def close(self) -> None:
        """The connection is gone: so are those into the pod."""
        for task in self._tasks:
            task.cancel()

    async def _control(self, kind: int, flags: int, body: bytes) -> None:
        if kind == SYN_STREAM:
            (stream,) = struct.unpack(">I", body[:4])
            await self._opened(stream, self._headers(body[10:]))
        elif kind == RST_STREAM:
            gone = self._streams.pop(struct.unpack(">I", body[:4])[0], None)
            if gone:
                gone.inbox.put_nowait(None)
        elif kind == PING:
            await self._say(PING, body)

    def _data(self, number: int, flags: int, body: bytes) -> None:
        stream = self._streams.get(number)
        if stream is None:
            return
        if body:
            stream.inbox.put_nowait(body)
        if flags & FIN:
            stream.inbox.put_nowait(None)

    def _headers(self, block: bytes) -> Mapping[str, str]:
        """Names and values: a count, and each with its length before it."""
        text = self._inflate.decompress(block)
        (count,) = struct.unpack(">I", text[:4])
        words, at = [], 4
        for _ in range(2 * count):
            (length,) = struct.unpack(">I", text[at : at + 4])
            words.append(text[at + 4 : at + 4 + length].decode())
            at += 4 + length
        return dict(zip((name.lower() for name in words[::2]), words[1::2], strict=True))

    async def _opened(self, number: int, headers: Mapping[str, str]) -> None:
        no_headers = self._deflate.compress(struct.pack(">I", 0))
        no_headers += self._deflate.flush(zlib.Z_SYNC_FLUSH)
        await self._say(SYN_REPLY, struct.pack(">I", number) + no_headers)
        request = headers["requestid"]
        if headers["streamtype"] == "error":
            self._error_streams[request] = number
            return
        stream = _Stream(int(headers["port"]), self._error_streams.pop(request))
        self._streams[number] = stream
        task = asyncio.ensure_future(self._carry(number, stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, number: int, stream: _Stream) -> None:
        with suppress(ConnectionError):  # kubectl has left: nobody is to be told of an end
            await self._forward(number, stream)

    async def _forward(self, number: int, stream: _Stream) -> None:
        """Carry one connection, until either side ends it."""
        try:
            reader, writer = await self._connect(stream.port)
        except OSError as error:
            why = f"failed to connect to localhost:{stream.port} inside pod: {error}"
            await self._write(stream.errors, why.encode())
            await self._end(stream.errors, number)
            return
        upwards = asyncio.ensure_future(_pump(stream, writer))
        try:
            while data := await reader.read(BLOCK):
                await self._write(number, data)
        except ConnectionError:
            pass  # reset by the pod: an end like any other
        finally:
            upwards.cancel()
            writer.close()
            self._streams.pop(number, None)
        await self._end(number, stream.errors)

    async def _say(self, kind: int, body: bytes) -> None:
        await self._send(struct.pack(">HHI", 0x8003, kind, len(body)) + body)

    async def _write(self, stream: int, data: bytes, flags: int = 0) -> None:
        await self._send(struct.pack(">II", stream, flags << 24 | len(data)) + data)

    async def _end(self, *streams: int) -> None:
        for stream in streams:
            await self._write(stream, b"", FIN)


async def _pump(stream: _Stream, writer: asyncio.StreamWriter) -> None:
    while data := await stream.inbox.get():
        writer.write(data)
        await writer.drain()
    writer.write_eof()
