"""Reverse connections: opened by ranks, and held until the engine takes them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from dap_mux.pure.errors import DapMuxError, PeerFault
from dap_mux.pure.protocol.messages import Framer, Request, decode, encode, encode_frame, plain
from dap_mux.shell.driver import Driver
from dap_mux.shell.links import RankLink
from dap_mux.shell.sockets import prepare, tcp_of

logger = logging.getLogger("dap_mux.dial")
GREETING, TAKEN, REFUSED = "dapMuxGreeting", "dapMuxTaken", "dapMuxRefused"
PROOF_TIMEOUT_S: Final = 10.0
MAX_PROOF_SIZE: Final = 64 * 1024  # bytes
MAX_HELD: Final = 1024 * 1024  # bytes buffered before the engine takes the connection
MISMATCH: Final = "the rank and the session have different tokens"


@dataclass(frozen=True)
class Refusal:
    """Why a rank is refused; `final`: trying again will not help."""

    message: str
    final: bool = False


class ReverseRankOwner(Protocol):
    """Identifies ranks that connect, and learns of those that disconnect."""

    def accept(self, connection: ReverseConnection) -> Refusal | None:
        """A rank has proved the token, and describes itself (`connection.rank`)."""

    def disconnected(self, connection: ReverseConnection) -> None:
        """The connection has ended, whether or not the engine had taken it."""


# First both sides prove that they know the token (`dap_mux.rank.dial` is the other side). Until
# then only one small message is read and nothing is passed on. Every user must prove it, this one
# included, so the connection's owner does not matter. Afterwards the connection is a link to a rank
# like any other, with debugpy at its other end.
@dataclass(eq=False)
class ReverseConnection(asyncio.Protocol):
    """One connection of a rank; `rank`: its description, with the keys of a ranks file."""

    driver: Driver
    owner: ReverseRankOwner
    token: str = field(repr=False)
    rank: dict[str, Any] = field(default_factory=dict)
    peer: tuple[str, int] = ("", 0)

    def __post_init__(self) -> None:
        self._framer = Framer(max_body=MAX_PROOF_SIZE)
        self._nonce = secrets.token_hex(16)
        self._held: bytes | None = None
        self._link: RankLink | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A peer has connected: send the greeting."""
        # uvloop's transports are none of asyncio's classes
        self._transport = cast("asyncio.Transport", transport)
        self.peer = (transport.get_extra_info("peername") or self.peer)[
            :2
        ]  # it may have gone already
        prepare(tcp_of(transport))
        self._say(GREETING, {"nonce": self._nonce})
        loop = asyncio.get_running_loop()
        self._late = loop.call_later(
            PROOF_TIMEOUT_S, self._shut, f"no proof of the token within {PROOF_TIMEOUT_S:g} s"
        )

    def data_received(self, data: bytes) -> None:
        """Read the proof, then buffer debugpy's messages until the engine takes the connection."""
        if self._link is not None:
            self._link.data_received(data)
        elif self._held is not None:
            self._hold(data)
        else:
            try:
                bodies = self._framer.feed(data)
                if bodies:
                    self._heed(plain(decode(bodies[0]).body))
            except PeerFault as error:
                self._shut(f"it is not a rank of dap-mux: {error}")

    def _hold(self, data: bytes) -> None:
        self._held = (self._held or b"") + data
        if len(self._held) > MAX_HELD:
            self._shut("it sent too much before it was asked")

    def _heed(self, body: dict[str, Any]) -> None:
        self._late.cancel()
        theirs, shown, rank = str(body.get("nonce")), str(body.get("proof")), body.get("rank")
        expected = proof(self.token, "rank", self._nonce, theirs)
        if not hmac.compare_digest(shown.encode(), expected.encode()):
            self._refuse(Refusal(MISMATCH, final=True))
            return
        self.rank = rank if isinstance(rank, dict) else {}
        self._held = b""
        refusal = self.owner.accept(self)
        if refusal is not None:
            self._refuse(refusal)
            return
        self._say(TAKEN, {"proof": proof(self.token, "session", self._nonce, theirs)})

    def _refuse(self, refusal: Refusal) -> None:
        self._say(REFUSED, {"message": refusal.message, "final": refusal.final})
        self._shut(refusal.message)

    def _say(self, command: str, arguments: dict[str, Any]) -> None:
        self._transport.write(encode_frame(encode(Request(1, command, arguments))))

    def _shut(self, why: str) -> None:
        self._late.cancel()
        logger.warning("closed a reverse connection from %s:%d: %s", *self.peer, why)
        self._transport.close()

    def take_up(self, number: int) -> None:
        """Become the engine's link of this number."""
        self._link = RankLink(self.driver, number)
        self._link.connection_made(self._transport)
        if self._held:
            self._link.data_received(self._held)

    @property
    def said_goodbye(self) -> bool:
        """Whether it has announced the end of its process before the engine took it."""
        return self._link is None and b'"terminated"' in (self._held or b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """Either side has closed the connection."""
        self._late.cancel()
        if self._link is not None:
            self._link.connection_lost(exc)
        self.owner.disconnected(self)

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def abort(self) -> None:
        """Drop the connection: its rank has connected again."""
        self._transport.abort()


def proof(token: str, who: str, ours: str, theirs: str) -> str:
    """Return the proof that `who` knows the token; the session's nonce comes first."""
    text = f"dap-mux {who} {ours} {theirs}".encode()
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest()


async def listen_reverse(
    driver: Driver, owner: ReverseRankOwner, token: str, host: str, port: int
) -> tuple[asyncio.Server, int]:
    """Listen on exactly this port, which ranks have been given. Raises `DapMuxError`."""
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(
            lambda: ReverseConnection(driver, owner, token), host, port
        )
    except OSError as error:
        why = error.strerror or error
        raise DapMuxError(
            f"cannot listen for reverse connections on {host}:{port}: {why}"
        ) from None
    return server, int(server.sockets[0].getsockname()[1])
