"""Ranks that call us: each connection is one call, held until the engine takes it up.

The first words are the two proofs of the token (`dap_mux.rank.token_proof` is the other side).
Before them nothing is taken but one small message, and nothing is passed on, whoever calls: this
user shows them as anybody else does, so nobody is asked whose connection it is. After them the
connection is a rank's link like any other, with debugpy itself at its other end.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

from dap_mux.engine.outputs import Connect
from dap_mux.errors import DapMuxError, PeerFault
from dap_mux.protocol.framing import Framer, encode_frame
from dap_mux.protocol.messages import Request, decode, encode, plain
from dap_mux.rank_sets import RankId
from dap_mux.shell.driver import Driver
from dap_mux.shell.links import RankLink
from dap_mux.shell.sockets import prepare, tcp_of

logger = logging.getLogger("dap_mux.dial")
GREETING, TAKEN, REFUSED = "dapMuxGreeting", "dapMuxTaken", "dapMuxRefused"
PROOF_TIMEOUT_S: Final = 10.0  # s for the proof
MAX_PROOF_SIZE: Final = 64 * 1024  # bytes of it
MAX_HELD: Final = 1024 * 1024  # bytes buffered before the engine takes the connection
MISMATCH: Final = "the rank has another token than the session"


@dataclass(frozen=True)
class Refusal:
    """Why a call is not taken; `final`: nor will be the next one of that rank."""

    message: str
    final: bool = False


class ReverseRankOwner(Protocol):
    """Who knows the ranks: gets their calls, and hears of those that hung up."""

    def called(self, call: ReverseConnection) -> Refusal | None:
        """A rank has shown the token, and says who it is (`call.rank`)."""

    def hung_up(self, call: ReverseConnection) -> None:
        """The call has ended, before it was taken up or after."""


@dataclass(eq=False)
class ReverseConnection(asyncio.Protocol):
    """One connection of a rank; `rank` is what it says of itself, in the words of a ranks file."""

    driver: Driver
    desk: ReverseRankOwner
    token: str = field(repr=False)
    rank: dict[str, Any] = field(default_factory=dict)
    peer: tuple[str, int] = ("", 0)

    def __post_init__(self) -> None:
        self._framer = Framer(max_body=MAX_PROOF_SIZE)
        self._nonce = secrets.token_hex(16)
        self._held: bytes | None = None
        self._link: RankLink | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A rank calls, or somebody else does: speak first."""
        # uvloop's transports are none of asyncio's classes
        self._transport = cast("asyncio.Transport", transport)
        self.peer = (transport.get_extra_info("peername") or self.peer)[:2]  # it may be gone
        prepare(tcp_of(transport))
        self._say(GREETING, {"nonce": self._nonce})
        loop = asyncio.get_running_loop()
        self._late = loop.call_later(
            PROOF_TIMEOUT_S, self._shut, f"no proof within {PROOF_TIMEOUT_S:g} s"
        )

    def data_received(self, data: bytes) -> None:
        """The proof; then, until the call is taken up, whatever debugpy has to say."""
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
                self._shut(f"it is no rank of dap-mux: {error}")

    def _hold(self, data: bytes) -> None:
        self._held = (self._held or b"") + data
        if len(self._held) > MAX_HELD:
            self._shut("it talks before it is asked")

    def _heed(self, body: dict[str, Any]) -> None:
        self._late.cancel()
        theirs, shown, rank = str(body.get("nonce")), str(body.get("proof")), body.get("rank")
        expected = proof(self.token, "rank", self._nonce, theirs)
        if not hmac.compare_digest(shown.encode(), expected.encode()):
            self._refuse(Refusal(MISMATCH, final=True))
            return
        self.rank = rank if isinstance(rank, dict) else {}
        self._held = b""
        refusal = self.desk.called(self)
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
        logger.warning("closed a call from %s:%d: %s", *self.peer, why)
        self._transport.close()

    def take_up(self, number: int) -> None:
        """From now on it is the engine's link of this number."""
        self._link = RankLink(self.driver, number)
        self._link.connection_made(self._transport)
        if self._held:
            self._link.data_received(self._held)

    @property
    def said_goodbye(self) -> bool:
        """Whether it has told, while nobody had taken it up, that its process ends."""
        return self._link is None and b'"terminated"' in (self._held or b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """The rank has hung up, or we have."""
        self._late.cancel()
        if self._link is not None:
            self._link.connection_lost(exc)
        self.desk.hung_up(self)

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def abort(self) -> None:
        """Its rank has called again: whatever this connection is, it leads nowhere."""
        self._transport.abort()


def proof(token: str, who: str, ours: str, theirs: str) -> str:
    """What shows that `who` knows the token: the session's number comes first."""
    text = f"dap-mux {who} {ours} {theirs}".encode()
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest()


async def listen_reverse(
    driver: Driver, desk: ReverseRankOwner, token: str, host: str, port: int
) -> tuple[asyncio.Server, int]:
    """Listen on this very port, for ranks have been told of it. Raises `DapMuxError`."""
    loop = asyncio.get_running_loop()
    try:
        server = await loop.create_server(
            lambda: ReverseConnection(driver, desk, token), host, port
        )
    except OSError as error:
        why = error.strerror or error
        raise DapMuxError(f"cannot listen for ranks' calls on {host}:{port}: {why}") from None
    return server, int(server.sockets[0].getsockname()[1])


Taken = Callable[[RankId], ReverseConnection | None]


def connector(driver: Driver, take: Taken) -> Callable[[Connect], None]:
    """Return what answers the engine's `Connect` to a rank that calls."""

    def take_up(wanted: Connect) -> None:
        call = take(wanted.rank)
        if call is None:
            driver.link_down(wanted.link, "the rank hung up before its call was taken")
        else:
            call.take_up(wanted.link)

    return take_up
