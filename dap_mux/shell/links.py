"""A connection to one rank: decodes its messages. Never closed in the middle of a message."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Protocol, cast

from dap_mux.engine import Engine, inputs
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import Framer, Message, decode
from dap_mux.shell.sockets import (
    LivenessMonitor,
    acknowledge_now,
    file_of,
    options_of,
    prepare,
    write_now,
)
from dap_mux.shell.timers import Timer, Timers

if TYPE_CHECKING:
    import socket

CONNECT_TIMEOUT_S: Final = 10.0
CLOSE_DELAY_S: Final = 0.8  # see `_close_later`


class LinkOwner(Protocol):
    """The part of the driver that a link needs."""

    engine: Engine
    max_message: int
    timers: Timers

    def feed(self, *happened: inputs.Input) -> None:
        """Pass inputs to the engine."""

    def link_up(self, number: int, link: RankLink) -> None:
        """The connection is established."""

    def link_down(self, number: int, reason: str) -> None:
        """The connection has ended."""


class RankLink(asyncio.Protocol):
    """One connection. Tells its owner once when it is up, and once when it is down."""

    __slots__ = (
        "_closing",
        "_driver",
        "_file",
        "_framer",
        "_link",
        "_over",
        "_pulse",
        "_reason",
        "_sent",
        "_socket",
        "_transport",
    )

    def __init__(self, driver: LinkOwner, link: int) -> None:
        self._driver = driver
        self._link = link
        self._framer = Framer(max_body=driver.max_message)
        self._transport: asyncio.Transport | None = None
        self._socket: socket.socket | None = None
        self._file: int | None = None
        self._pulse: LivenessMonitor | None = None
        self._reason = "the rank closed the connection"
        self._closing: Timer | None = None
        self._over = False
        self._sent = False  # anything, since data came last

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TCP is up."""
        # uvloop's transports are none of asyncio's classes
        self._transport = cast("asyncio.Transport", transport)
        self._socket = options_of(transport)
        self._file = file_of(transport)
        prepare(self._socket)
        self._pulse = LivenessMonitor(self._socket, self._dead, self._driver.timers)
        self._driver.link_up(self._link, self)

    def data_received(self, data: bytes) -> None:
        """Decode messages; malformed data costs the rank this connection only."""
        if self._closing:
            return
        framer, collect = self._framer, self._driver.engine.collect
        if framer.between and collect(self._link, data):
            return  # the rank waits for our next question
        try:
            body = framer.whole(data)
            if body is None:
                said = list(map(decode, framer.feed(data)))
            elif collect(self._link, data, message := decode(body)):
                return
            else:
                said = [message]
        except PeerFault as error:
            self._reason = f"the rank sent malformed data: {error}"
            self._close_later()
            return
        self._hear(said)

    def _hear(self, said: list[Message]) -> None:
        """Pass messages on, and acknowledge them."""
        driver, link = self._driver, self._link
        self._sent = False
        if len(said) == 1:  # as nearly always
            driver.feed(inputs.LinkSaid(link, said[0]))
        else:
            driver.feed(*[inputs.LinkSaid(link, message) for message in said])
        # What we send acknowledges it, and so does our next request after a response. Anything else
        # is acknowledged now: the rank may wait for that before it sends more.
        if self._sent:
            return
        quiet = said and driver.engine.is_quiet(link, said[-1])
        if not quiet or self._framer.waiting_for:
            acknowledge_now(self._socket)

    def connection_lost(self, exc: Exception | None) -> None:
        """TCP is down."""
        if self._pulse:
            self._pulse.stop()
        if self._closing:
            self._closing.cancel()
        if self._socket:
            self._socket.detach()  # the descriptor is the transport's
            self._socket = None
        if isinstance(exc, OSError):
            self._reason = f"connection lost: {exc.strerror or exc}"
        self._tell_down()

    def _close_later(self) -> None:
        """Ignore further data, and close once pending responses should have arrived.

        A response to `evaluate` that finds the connection closed ends debugpy's adapter, and with
        it the rank's port (measured). Behind malformed data we cannot tell which have arrived.
        """
        self._closing = self._driver.timers.call_later(CLOSE_DELAY_S, self.close)

    def _dead(self, why: str) -> None:
        assert self._transport is not None
        self._reason = f"connection lost: {why}"
        self._transport.abort()

    def _tell_down(self) -> None:
        if not self._over:
            self._over = True
            self._driver.link_down(self._link, self._reason)

    def send(self, frames: bytes) -> None:
        """Write whole messages at once."""
        transport = self._transport
        if transport is not None and self._closing is None and not transport.is_closing():
            write_now(transport, self._file, frames)
            self._sent = True

    def close(self) -> None:
        """Close once the buffer is sent."""
        if self._transport:
            self._transport.close()
