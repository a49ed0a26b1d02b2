"""Connections of clients, over TCP and standard streams, and the limits before they are admitted.

Other users must show the token. A peer that does not speak DAP is disconnected, little is read
before `initialize` and the token, and a stalled message ends only its own connection.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import stat
from collections.abc import Callable
from functools import partial
from io import FileIO
from itertools import islice
from typing import TYPE_CHECKING, Final, cast

from dap_mux.engine import inputs
from dap_mux.pure.errors import DapMuxError, PeerFault, UsageError
from dap_mux.pure.protocol.messages import Framer, MessageError, decode
from dap_mux.shell.auth import Guard
from dap_mux.shell.sockets import (
    LivenessMonitor,
    acknowledge_now,
    file_of,
    is_from_here,
    prepare,
    tcp_of,
    tls_options,
    write_now,
)

if TYPE_CHECKING:
    import socket
    import ssl

    from dap_mux.shell.driver import Driver

logger = logging.getLogger("dap_mux.client")
MAX_FIRST_MESSAGE: Final = 64 * 1024  # bytes
STALL_TIMEOUTS_S: Final = {"header": 10.0, "body": 30.0}
FIRST_MESSAGE_TIMEOUT_S: Final = 10.0
TLS_HELLO: Final = b"\x16\x03"
HIGH_WATER: Final = 1024 * 1024  # unread bytes, from which on a client's output is dropped
LOW_WATER: Final = HIGH_WATER // 2
MAX_UNREAD: Final = 48 * 1024 * 1024  # bytes, from which on a client is disconnected
MAX_PORTS_TRIED: Final = 50
LAST_PORT: Final = 65536


class ClientConnection(asyncio.Protocol):
    """One client. `writer` differs from the reader for standard streams.

    Without a `guard` it is trusted; otherwise limits apply until it is admitted. `fault`: the
    peer's error for which we have closed the connection.
    """

    def __init__(self, driver: Driver, guard: Guard | None = None) -> None:
        self.fault = ""
        self._driver = driver
        self._guard = guard
        self._trusted = guard is None
        self._framer = Framer(max_body=min(MAX_FIRST_MESSAGE, driver.max_message))
        self._writer: asyncio.WriteTransport | None = None
        self._reader: asyncio.BaseTransport | None = None
        self._socket: socket.socket | None = None
        self._file: int | None = None
        self._client = 0
        self._known = False
        self._stall: asyncio.TimerHandle | None = None
        self._stalled_on = ""
        self._pulse: LivenessMonitor | None = None

    def write_to(self, transport: asyncio.WriteTransport) -> None:
        """Write to another transport than the one that we read from."""
        self._writer = transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._reader = transport
        if self._writer is None:  # uvloop's transports are none of asyncio's classes
            self._writer = cast("asyncio.WriteTransport", transport)
        if self._writer.is_closing():  # an editor that is gone already: its standard output is
            transport.close()
            return
        self._socket = tcp_of(transport)
        self._file = file_of(self._writer)
        if self._guard is not None:
            self._trusted = self._guard.trusts(transport.get_extra_info("socket"))
        prepare(self._socket)
        self._pulse = LivenessMonitor(self._socket, self._stalled, self._driver.timers)
        self._writer.set_write_buffer_limits(high=HIGH_WATER, low=LOW_WATER)
        token = self._guard.token if self._guard is not None else None
        self._client = self._driver.client_connected(self, token, trusted=self._trusted)
        self._arm("first message" if self._trusted else "token", FIRST_MESSAGE_TIMEOUT_S)

    def data_received(self, data: bytes) -> None:
        """Decode messages and pass them on."""
        if not self._client:
            return
        try:
            said = [self._read(body) for body in self._framer.feed(data)]
        except PeerFault as error:
            hint = (
                " (the client speaks TLS, and this port does not)" if data[:2] == TLS_HELLO else ""
            )
            self._stalled(f"{error}{hint}")
            return
        if said and self._trusted and not self._known:
            self.admitted()
        self._driver.feed(*said)
        self._watch_stall()

    def _read(self, body: bytes) -> inputs.ClientSaid | inputs.ClientBabbled:
        """Decode a message; after one that is not DAP the client is disconnected."""
        try:
            return inputs.ClientSaid(self._client, decode(body))
        except MessageError as error:
            self._blame(str(error))
            return inputs.ClientBabbled(self._client, str(error), error.seq, error.command)

    def admitted(self) -> None:
        """The first message has arrived, and the token if required: lift the limits."""
        self._known = True
        self._framer.allow(self._driver.max_message)

    def _watch_stall(self) -> None:
        """Limit the time for a header, and the time without progress in a body."""
        waiting = self._framer.waiting_for
        if not self._known or waiting == self._stalled_on == "":
            return
        if waiting == "header" and self._stalled_on == "header":
            return
        self._disarm()
        if waiting:
            acknowledge_now(self._socket)  # the client may wait for that before it sends the rest
            self._arm(waiting, STALL_TIMEOUTS_S[waiting])

    def _arm(self, what: str, seconds: float) -> None:
        self._stalled_on = what
        loop = asyncio.get_running_loop()
        self._stall = loop.call_later(seconds, self._stalled, f"{what} overdue ({seconds:g} s)")

    def _disarm(self) -> None:
        self._stalled_on = ""
        if self._stall:
            self._stall.cancel()
            self._stall = None

    def _stalled(self, why: str) -> None:
        self._blame(why)
        self._abort()

    def _blame(self, why: str) -> None:
        self.fault = why
        logger.warning("closed client %d: %s", self._client, why)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        self._disarm()
        if self._pulse:
            self._pulse.stop()
        client, self._client = self._client, 0
        if client:
            self._driver.client_gone(client)

    def send(self, frames: bytes) -> None:
        """Write whole messages at once."""
        if self._writer and not self._writer.is_closing():
            write_now(self._writer, self._file, frames)
            if self._writer.get_write_buffer_size() > MAX_UNREAD:
                self._stalled(f"{MAX_UNREAD >> 20} MiB are unread")

    def pause_writing(self) -> None:
        """The client does not read: from now on its output is dropped."""
        self._driver.feed(inputs.ClientStalled(self._client))

    def resume_writing(self) -> None:
        """The client reads again."""
        self._driver.feed(inputs.ClientReads(self._client))

    def is_near(self) -> bool:
        """Whether the client is on this machine."""
        return self._reader is not None and is_from_here(self._reader)

    def close(self) -> None:
        """Close once the buffer is sent."""
        for transport in {self._writer, self._reader} - {None}:
            assert transport is not None
            transport.close()

    def _abort(self) -> None:
        if self._writer:
            self._writer.abort()
        if self._reader is not None and self._reader is not self._writer:
            self._reader.close()  # standard input


async def listen(
    driver: Driver,
    host: str,
    port: int,
    *,
    avoid: range = range(0),
    guard: Guard | None = None,
    tls: ssl.SSLContext | None = None,
) -> tuple[asyncio.Server, int]:
    """Listen on `port`, or on the next free one; return the server and the port it has.

    `avoid`: ports that ranks will use, never taken instead of a busy one.
    """
    loop = asyncio.get_running_loop()
    factory = connection_factory(driver, guard or Guard())
    # uvloop takes bytes as they are, and for text imports Unicode's tables of names of hosts
    hosts = cast("list[str]", [host.encode("ascii") if host.isascii() else host])
    others = (one for one in range(port + 1, LAST_PORT) if one not in avoid)
    for candidate in [port, *islice(others, MAX_PORTS_TRIED)] if port else [0]:
        try:
            server = await loop.create_server(factory, hosts, candidate, **tls_options(tls))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            raise DapMuxError(f"cannot listen on {host}:{candidate}: {error.strerror}") from None
        return server, int(server.sockets[0].getsockname()[1])
    raise DapMuxError(f"no free port on {host}: tried {port} and {MAX_PORTS_TRIED} others above it")


class _Output(asyncio.BaseProtocol):
    """Standard output, whose flow control is passed on to the connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()


def connection_factory(driver: Driver, guard: Guard) -> Callable[[], ClientConnection]:
    """Return the protocol factory for a server of clients."""
    return partial(ClientConnection, driver, guard)


class StdioConnection(ClientConnection):
    """The client on standard input and output; `closed` is set once it has gone."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self.closed = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        super().connection_lost(exc)
        self.closed.set()


async def serve_stdio(driver: Driver) -> StdioConnection:
    """Speak DAP on standard input and output."""
    loop = asyncio.get_running_loop()
    connection = StdioConnection(driver)
    stdin, stdout = _take_stdio()
    writer, _ = await loop.connect_write_pipe(lambda: _Output(connection), stdout)
    connection.write_to(writer)
    await loop.connect_read_pipe(lambda: connection, stdin)
    return connection


def _take_stdio() -> tuple[FileIO, FileIO]:
    """Return standard input and output for us alone; whatever else is printed goes to stderr.

    They are duplicates, so the transports may close them: Python's own streams stay open.
    Raises UsageError.
    """
    for stream, name in enumerate(("input", "output")):
        kind = os.fstat(stream).st_mode
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
            # Event loops cannot wait for most other kinds: libuv aborts on /dev/null.
            raise UsageError(f"standard {name} must be a pipe to an editor that speaks DAP")
    stdin, stdout = FileIO(os.dup(0)), FileIO(os.dup(1), "w")
    with FileIO(os.open(os.devnull, os.O_RDONLY)) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return stdin, stdout
