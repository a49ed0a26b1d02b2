"""Feeds inputs to the engine and carries out its outputs, without waiting in between."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from dap_mux.engine import Engine, inputs, outputs
from dap_mux.engine.admission import Token
from dap_mux.engine.outputs import ToClient, ToRank, ToRanks
from dap_mux.pure.protocol.messages import MAX_BODY, encode_frame
from dap_mux.shell.links import CONNECT_TIMEOUT_S, RankLink
from dap_mux.shell.local_machine import (
    LocalFiles,
    LocalProcesses,
    Threads,
    is_over,
    read_processes,
    text_of,
)
from dap_mux.shell.timers import Timer, Timers

if TYPE_CHECKING:
    from dap_mux.pure.insight.why.evidence import Process

logger = logging.getLogger("dap_mux")
# Connections that are opened at once, and how soon as many more are: a session of thousands of
# ranks needs half the memory for it (measured), and no listener is met by all of them.
AT_ONCE: Final = 128
PACE_S: Final = 0.05
CLOSE_TIMEOUT_S: Final = 1.0


class Peer(Protocol):
    """A client's connection, as the driver sees it."""

    def send(self, frames: bytes) -> None:
        """Write whole messages."""

    def admitted(self) -> None:
        """The client has shown the token."""

    def close(self) -> None:
        """Close once everything is out."""

    def is_near(self) -> bool:
        """Whether its connection comes from this machine."""


class ReverseConnections(Protocol):
    """The connections that ranks have opened to this session."""

    def take_up(self, wanted: outputs.Connect) -> None:
        """Make the connection of a rank the engine's link, or report `link_down`."""


class PauseObserver(Protocol):
    """A part that has to know whether any rank is stopped."""

    def paused(self, *, stopped: bool) -> None:
        """Any rank is stopped in the debugger from now on, or none is."""


Writes: TypeAlias = "dict[Peer | RankLink, list[bytes]]"
"""The frames that are to be written to each peer."""

_CLOSES: Final = frozenset({outputs.CloseClient, outputs.CloseLink})


class Driver:
    """One engine, its sockets and its deadlines.

    What clients ask of the session is kept until the session takes it: `end_requested`,
    `restart_requested` and `restart_to` are about its job, `rank_searches` are the ranks to find
    or start. `tell` shows a text to the user at the terminal.
    """

    def __init__(
        self,
        engine: Engine,
        max_message: int = MAX_BODY,
        tell: Callable[[str], None] = logger.info,
    ) -> None:
        self.engine = engine
        self.max_message = max_message
        self.finished = asyncio.Event()
        self.end_requested = asyncio.Event()
        self.restart_requested = asyncio.Event()
        self.restart_to = ""
        self.rank_searches: asyncio.Queue[outputs.FindRanks] = asyncio.Queue()
        self._pause_observers: list[PauseObserver] = []
        self._reverse_connections: ReverseConnections | None = None
        self._loop = asyncio.get_running_loop()
        self._clients: dict[int, Peer] = {}
        self._links: dict[int, RankLink] = {}
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._waiting: OrderedDict[int, outputs.Connect] = OrderedDict()  # to be connected
        self._at_once = AT_ONCE
        self._more: Timer | None = None  # until more may be connected at once
        self._files = LocalFiles()
        self._processes = LocalProcesses()
        self._threads = Threads()
        self.timers = Timers()
        self.fed = 0  # how many times
        self._deadlines: dict[int, Timer] = {}
        self._numbers = 0
        self._change: asyncio.Event | None = None  # where somebody waits for the next one
        self._carry: dict[type, Callable[[Any], None]] = {
            outputs.Admitted: self._admitted,
            outputs.CloseClient: self._close_client,
            outputs.Connect: self._connect,
            outputs.CloseLink: self._close_link,
            outputs.WatchProcess: self._watch_process,
            outputs.ReadProcesses: self._read_processes,
            outputs.UnwatchProcess: lambda output: self._processes.forget(output.token),
            outputs.SetDeadline: self._set_deadline,
            outputs.CancelDeadline: self._cancel_deadline,
            outputs.HashLocal: self._hash_local,
            outputs.ReadLocal: self._read_local,
            outputs.EndJob: lambda output: self.end_requested.set(),
            outputs.RestartJob: self._restart_job,
            outputs.FindRanks: self.rank_searches.put_nowait,
            outputs.Paused: self._paused,
            outputs.Finished: lambda output: self.finished.set(),
            outputs.Tell: lambda output: tell(output.text),
            outputs.Log: _log,
        }

    def feed(self, *happened: inputs.Input) -> None:
        """Pass inputs to the engine and carry out its outputs; each peer gets one write."""
        self.fed += 1
        writes: Writes = {}
        for item in happened:
            for output in self.engine.receive(item):
                if type(output) is ToRanks:
                    self._to_ranks(writes, output)
                elif type(output) is ToRank:
                    _add(writes, self._links.get(output.link), encode_frame(output.body))
                elif type(output) is ToClient:
                    _add(writes, self._clients.get(output.client), encode_frame(output.body))
                else:
                    kind = type(output)
                    if kind in _CLOSES:
                        _write(writes)
                    self._carry[kind](output)
        if writes:
            _write(writes)

    def _to_ranks(self, writes: Writes, output: outputs.ToRanks) -> None:
        """To one rank in one write with the rest for it; to many at once, behind the rest."""
        frame = encode_frame(output.body)
        if len(output.links) == 1:
            _add(writes, self._links.get(output.links[0]), frame)
            return
        _write(writes)
        for link in output.links:
            peer = self._links.get(link)
            if peer is not None:
                peer.send(frame)

    # Clients

    def client_connected(
        self, peer: Peer, token: Token | None = None, *, trusted: bool = True
    ) -> int:
        """Register a client and return its number. Without `trusted` it must show the token."""
        self._numbers += 1
        self._clients[self._numbers] = peer
        self.feed(inputs.ClientConnected(self._numbers, trusted, token))
        return self._numbers

    def client_gone(self, client: int) -> None:
        """A client's connection is closed."""
        if self._clients.pop(client, None):
            self.feed(inputs.ClientGone(client))
            self._changed()

    def _admitted(self, output: outputs.Admitted) -> None:
        peer = self._clients.get(output.client)
        if peer:
            peer.admitted()

    def _close_client(self, output: outputs.CloseClient) -> None:
        peer = self._clients.get(output.client)
        if peer:
            peer.close()

    def _hash_local(self, output: outputs.HashLocal) -> None:
        peer = self._clients.get(output.client)

        def tell(digests: dict[str, str]) -> None:
            self.feed(inputs.LocalHash(output.token, digests))

        paths = output.paths if peer and peer.is_near() else ()
        self._threads.start(partial(self._files.digests, paths), tell)

    def _read_local(self, output: outputs.ReadLocal) -> None:
        peer = self._clients.get(output.client)
        path = output.path if peer and peer.is_near() else ""

        def tell(text: str) -> None:
            self.feed(inputs.LocalText(output.token, text))

        self._threads.start(partial(text_of, path), tell)

    # Ranks

    def link_up(self, number: int, link: RankLink) -> None:
        """A rank's connection is established."""
        self._links[number] = link
        self.feed(inputs.LinkUp(number))

    def link_down(
        self, number: int, reason: str, *, refused: bool = False, over: bool = False
    ) -> None:
        """A rank's connection failed or ended (`inputs.LinkDown`)."""
        self._links.pop(number, None)
        self.feed(inputs.LinkDown(number, reason, refused, over))
        self._changed()

    def _connect(self, output: outputs.Connect) -> None:
        if output.dials:
            self._loop.call_soon(self._take_up, output)
            return
        self._waiting[output.link] = output
        self._connect_more()

    def _connect_more(self) -> None:
        """Open as many connections as may be opened now; more of them as time passes."""
        while self._waiting and len(self._connecting) < self._at_once:
            _, first = self._waiting.popitem(last=False)
            self._begin(first)
        if self._waiting and self._more is None:
            self._more = self.timers.call_later(PACE_S, self._allow_more)
        elif not self._waiting:
            self._at_once = AT_ONCE

    def _allow_more(self) -> None:
        """Those that nobody answers do not keep the others waiting."""
        self._more = None
        self._at_once += AT_ONCE
        self._connect_more()

    def _begin(self, output: outputs.Connect) -> None:
        link = output.link
        task = self._connecting[link] = self._loop.create_task(self._open(output))
        late = self.timers.call_later(CONNECT_TIMEOUT_S, partial(self._give_up, link))
        task.add_done_callback(partial(self._tried, link, late))

    def _give_up(self, link: int) -> None:
        """Give up on a connection that took too long, unless it has just been made."""
        if link not in self._links:
            self._connecting[link].cancel()
            self.link_down(link, f"no connection within {CONNECT_TIMEOUT_S:g} s")

    def _tried(self, link: int, late: Timer, _: asyncio.Task[None]) -> None:
        late.cancel()
        self._connecting.pop(link, None)
        self._connect_more()
        self._changed()

    def watch_pauses(self, observer: PauseObserver) -> None:
        """Tell this observer whenever the first rank stops and the last one continues."""
        self._pause_observers.append(observer)

    def _restart_job(self, output: outputs.RestartJob) -> None:
        self.restart_to = output.to
        self.restart_requested.set()

    def _paused(self, output: outputs.Paused) -> None:
        for observer in self._pause_observers:
            observer.paused(stopped=output.stopped)

    def accept_reverse(self, connections: ReverseConnections) -> None:
        """Take the links to ranks that connect to us from these connections."""
        self._reverse_connections = connections

    def _take_up(self, output: outputs.Connect) -> None:
        if self._reverse_connections is None:
            self.link_down(output.link, "this session does not accept reverse connections")
        else:
            self._reverse_connections.take_up(output)

    async def _open(self, output: outputs.Connect) -> None:
        try:
            await self._loop.create_connection(
                lambda: RankLink(self, output.link), output.host, output.port
            )
        except ConnectionRefusedError:
            over = is_over(output.process)
            self.link_down(output.link, "connection refused", refused=True, over=over)
        except OSError as error:
            self.link_down(output.link, f"cannot connect: {error.strerror or error}")

    def _close_link(self, output: outputs.CloseLink) -> None:
        """Also one that is not yet made: the engine has forgotten it, and nobody would close it."""
        number = output.link
        link = self._links.get(number)
        if link:
            link.close()
        elif number in self._connecting:
            self._connecting[number].cancel()
        elif self._waiting.pop(number, None):
            self._changed()

    def _watch_process(self, output: outputs.WatchProcess) -> None:
        def tell(alive: bool | None) -> None:
            self.feed(inputs.ProcessSeen(output.token, alive))

        self._processes.watch(output.token, output.process, tell)

    # Deadlines

    def _set_deadline(self, output: outputs.SetDeadline) -> None:
        token = output.token
        passed = partial(self._deadline, token)
        self._deadlines[token] = self.timers.call_later(output.seconds, passed)

    def _deadline(self, token: int) -> None:
        self._deadlines.pop(token, None)
        self.feed(inputs.Deadline(token))

    def _cancel_deadline(self, output: outputs.CancelDeadline) -> None:
        timer = self._deadlines.pop(output.token, None)
        if timer:
            timer.cancel()

    # The end

    @property
    def has_clients(self) -> bool:
        """Whether anybody has connected, and not left."""
        return bool(self._clients)

    async def no_clients(self) -> None:
        """Wait until every client has left."""
        while self._clients:
            await self._next_change()

    async def no_links(self) -> None:
        """Wait until no rank is connected."""
        while self._links or self._connecting or self._waiting:
            await self._next_change()

    async def _next_change(self) -> None:
        if self._change is None:
            self._change = asyncio.Event()
        await self._change.wait()

    def _changed(self) -> None:
        """Wake all waiters."""
        change, self._change = self._change, None
        if change is not None:
            change.set()

    def _read_processes(self, output: outputs.ReadProcesses) -> None:
        def tell(found: dict[str, Process]) -> None:
            self.feed(inputs.ProcessesRead(output.token, found))

        self._threads.start(partial(read_processes, output.processes), tell)

    async def close(self) -> None:
        """Close every socket; what was sent goes out first."""
        self._waiting.clear()
        for task in list(self._connecting.values()):
            task.cancel()
        self._processes.close()
        self._threads.close()
        self.timers.cancel_all()
        self._deadlines.clear()
        for peer in list(self._clients.values()):
            peer.close()
        for link in list(self._links.values()):
            link.close()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._closed(), CLOSE_TIMEOUT_S)

    async def _closed(self) -> None:
        await self.no_clients()
        await self.no_links()


def _add(writes: Writes, peer: Peer | RankLink | None, frame: bytes) -> None:
    """Queue a message for a peer that is still connected."""
    if peer in writes:
        writes[peer].append(frame)
    elif peer is not None:
        writes[peer] = [frame]


def _write(writes: Writes) -> None:
    for peer, frames in writes.items():
        peer.send(frames[0] if len(frames) == 1 else b"".join(frames))
    writes.clear()


def _log(output: outputs.Log) -> None:
    """Loggers are named by component and rank, so that one rank can be followed."""
    if not logger.isEnabledFor(output.level):
        return
    name = output.component if output.rank is None else f"{output.component}.{output.rank[1]}"
    logger.getChild(name).log(output.level, "%s", output.text)
