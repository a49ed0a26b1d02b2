"""Ranks in this process: links without a socket, to something that answers as debugpy does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Final, Protocol

from msgspec.structs import replace

from dap_mux.cluster.records import DEFAULT_GROUP
from dap_mux.engine import Settings, inputs
from dap_mux.engine.outputs import Connect
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.protocol.messages import (
    Event,
    Framer,
    Message,
    Request,
    Response,
    decode,
    encode,
    encode_frame,
)
from dap_mux.session.session import Session, settings_of
from dap_mux.session.terminal_output import say
from dap_mux.shell.links import RankLink
from dap_mux.system.config import Config

Said = Event | Request | Response
GONE: Final = "the rank is not there"


class HostedRank(Protocol):
    """One rank, sans-IO."""

    def connected(self, say: Callable[[Said], None]) -> None:
        """The session has connected: from now on it hears what is said."""

    def heard(self, request: Message) -> None:
        """The session has sent a request."""


class Recorded(Protocol):
    """A recording, as `HostedRanks` shows it."""

    about: str
    output: Sequence[Mapping[str, str]]
    """The last lines that were printed, as bodies of `output`."""

    @property
    def ranks(self) -> Mapping[int, HostedRank]:
        """Its ranks, by number."""

    def begin(self, stage: HostedRanks) -> None:
        """Show the last stop."""


def show(session: Session, recording: Recorded) -> None:
    """Have a session show a recording."""
    session.tell(recording.about, lasting=True)
    recording.begin(HostedRanks(session, recording.ranks, recording.output))


def recorded_settings(config: Config) -> Settings:
    """Return the settings for a recording: no time-out threatens it, and it lasts."""
    never = {"clock_patience": 0.0, "library_patience": 0.0, "release_after": 0.0}
    return replace(settings_of(config), lingers=inf, **never)


class HostedRanks:
    """The ranks of a session by number (`ReverseConnections`); each may come, go and come back."""

    def __init__(
        self,
        session: Session,
        ranks: Mapping[int, HostedRank],
        output: Sequence[Mapping[str, str]],
    ) -> None:
        self._session = session
        self._output = output
        self._ranks = ranks
        self._comings = 0
        self._shown = False
        self._there: set[int] = set()
        session.driver.accept_reverse(self)

    def comes(self, rank: int) -> None:
        """A rank is there, in a process of its own."""
        self._there.add(rank)
        self._comings += 1
        about = f"coming {self._comings}"
        here = Endpoint("", 0, announces=True, ready=True, dials=True, incarnation=about)
        self._session.rank_known(DEFAULT_GROUP, rank, here)

    def ends(self, rank: int, code: int | None, how: str) -> None:
        """The process of a rank is over."""
        self._there.discard(rank)
        driver, id = self._session.driver, (DEFAULT_GROUP, rank)
        if id not in driver.engine.core.mains:
            self._session.rank_known(*id, Endpoint("", 0, announces=True, dials=True))
        driver.feed(inputs.RankExited(id, code, how))

    def shown(self, title: str, why: Mapping[str, object], end: str) -> None:
        """Another stop of a recording is shown (`inputs.Recorded`)."""
        self._session.driver.feed(inputs.Recorded(title, why, end, self._output))
        if not self._shown:  # later ones are shown by a client, which hears of it
            say(title)
        self._shown = True

    def later(self, call: Callable[[], None]) -> None:
        """Call it once all ranks have heard what they are sent now."""
        asyncio.get_running_loop().call_soon(call)

    def take_up(self, wanted: Connect) -> None:
        """Connect the engine to a rank."""
        number = wanted.rank[1]
        if number not in self._there:
            self._session.driver.link_down(wanted.link, GONE)
            return
        rank, link = self._ranks[number], RankLink(self._session.driver, wanted.link)
        rank.connected(lambda message: link.data_received(encode_frame(encode(message))))

        def closed() -> None:
            link.connection_lost(None)
            if number in self._there:
                self.comes(number)  # for whoever attaches next

        link.connection_made(_Pipe(rank, closed))


class _Pipe(asyncio.Transport):
    """The transport of a link. A rank reads its messages once all ranks have been sent theirs."""

    def __init__(self, rank: HostedRank, closed: Callable[[], None]) -> None:
        super().__init__()
        self._rank, self._when_closed = rank, closed
        self._framer = Framer()
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        for body in self._framer.feed(bytes(data)):
            self._loop.call_soon(self._rank.heard, decode(body))

    def is_closing(self) -> bool:
        return self._closed

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.call_soon(self._when_closed)

    def abort(self) -> None:
        self.close()
