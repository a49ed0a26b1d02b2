"""The faults. `carry` takes what was read in one direction, `finish` the end of that direction.

`Cut`, `Corrupt` and `Inject` happen once, to one direction (`proxy.up` or `proxy.down`); the
others last until the proxy is healed. `Reset`, `Refuse` and `BlackHole` are of the whole proxy
(`await proxy.fail(...)`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.support.faults.proxy import FaultProxy, Pipe

_PIECE: Final = 4096  # bytes between two looks at the clock


class Fault:
    """Nothing is wrong: everything is passed on as it comes."""

    accepts = True  # a new connection is passed on to the server

    async def begin(self, proxy: FaultProxy) -> None:
        """The whole proxy begins to fail in this way."""

    async def end(self, proxy: FaultProxy) -> None:
        """The whole proxy is healed of it."""

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        """Pass on what has come."""
        await pipe.write(data)

    async def finish(self, pipe: Pipe) -> None:
        """This direction has ended: pass that on."""
        pipe.write_eof()

    async def broke(self, pipe: Pipe) -> None:
        """This connection was reset: pass that on."""
        pipe.pair.reset()


PASS: Final = Fault()


class Latency(Fault):
    """Everything comes `seconds` later."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        await asyncio.sleep(self.seconds)
        await pipe.write(data)


class Rate(Fault):
    """A thin line: so many bytes a second."""

    def __init__(self, bytes_a_second: float) -> None:
        self.bytes_a_second = bytes_a_second

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            piece = data[start : start + _PIECE]
            await asyncio.sleep(len(piece) / self.bytes_a_second)
            await pipe.write(piece)


class OneByte(Fault):
    """Every byte is a segment of its own."""

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        for start in range(len(data)):
            await pipe.write(data[start : start + 1])
            await asyncio.sleep(0)


class Stall(Fault):
    """Nothing is read any more, so that the sender's window closes; it comes when healed."""

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        await pipe.way.healed(self)
        await pipe.way.fault.carry(pipe, data)

    async def finish(self, pipe: Pipe) -> None:
        await pipe.way.healed(self)
        await pipe.way.fault.finish(pipe)


class Reset(Fault):
    """Every connection is reset, once; new ones are served."""

    async def begin(self, proxy: FaultProxy) -> None:
        proxy.reset()
        await proxy.heal()


class Cut(Fault):
    """So many bytes more, then the end of the connection, in the middle of a message or not."""

    def __init__(self, after: int) -> None:
        self.left = after

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        kept, self.left = data[: self.left], self.left - len(data)
        await pipe.write(kept)
        if self.left <= 0:
            pipe.way.switch(PASS)
            pipe.pair.close()


class Inject(Fault):
    """These bytes come before the next ones, once."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        pipe.way.switch(PASS)
        await pipe.write(self.data + data)


class Corrupt(Fault):
    """The byte after so many more is another one, once."""

    def __init__(self, after: int) -> None:
        self.left = after

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        if self.left < len(data):
            pipe.way.switch(PASS)
            wrong = bytes([data[self.left] ^ 0xFF])
            data = data[: self.left] + wrong + data[self.left + 1 :]
        self.left -= len(data)
        await pipe.write(data)


class Refuse(Fault):
    """Nobody listens, and who is connected is reset: a tunnel that is down."""

    async def begin(self, proxy: FaultProxy) -> None:
        proxy.stop_listening()
        proxy.reset()

    async def end(self, proxy: FaultProxy) -> None:
        await proxy.listen()


class Orphan(Fault):
    """The client's end breaks and the server is not told until healed; new ones are served.

    As by a tunnel whose near half has died: its far half keeps its connection.
    """

    async def begin(self, proxy: FaultProxy) -> None:
        proxy.reset(servers=False)

    async def end(self, proxy: FaultProxy) -> None:
        proxy.reset(orphans=True)

    async def finish(self, pipe: Pipe) -> None:
        if pipe.pair.orphan:
            await pipe.way.healed(self)
        else:
            pipe.write_eof()

    async def broke(self, pipe: Pipe) -> None:
        if pipe.pair.orphan:
            await pipe.way.healed(self)
        else:
            pipe.pair.reset()


class BlackHole(Fault):
    """Everything vanishes, ends too, and nobody is told; when healed, both sides learn of it.

    Both kernels go on acknowledging: only `tests.support.netns` can keep that from a peer.
    """

    accepts = False

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        """Swallow it."""

    async def finish(self, pipe: Pipe) -> None:
        """Keep it to ourselves."""
        await pipe.way.healed(self)

    async def end(self, proxy: FaultProxy) -> None:
        proxy.reset()
