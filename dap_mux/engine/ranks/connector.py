"""The ranks' connections: one at a time for each rank, tried again with patience."""

from __future__ import annotations

from typing import Final, Protocol

from msgspec.structs import replace

from dap_mux.addresses import Backoff
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.outputs import CloseLink, Connect
from dap_mux.engine.ranks.process_watch import forget_lost
from dap_mux.engine.state.phases import Signal, step
from dap_mux.engine.state.rank import Connection, Rank
from dap_mux.engine.state.session import SessionState

# Changes of a rank's phase. All go through here; the table of them is `phases.TRANSITIONS`.


class Watcher(Protocol):
    """The rest of the engine, which is told what becomes of ranks."""

    def configuring(self, rank: Rank) -> None:
        """The rank takes breakpoints now, and does not run on before `start`."""

    def live(self, rank: Rank) -> None:
        """The rank is attached."""

    def lost(self, rank: Rank, was_live: bool) -> None:
        """The rank's connection is gone; `rank.phase` says whether its process is too."""


class Transitions:
    """Changes phases, and ends what belongs to the phase before."""

    def __init__(self, core: SessionState) -> None:
        self._core = core

    def to(self, rank: Rank, signal: Signal, reason: str = "") -> None:
        """Take the step that the table has for this signal."""
        before, after = rank.phase, step(rank.phase, signal)
        rank.phase = after
        if before.live or after.live:
            self._core.phase_changed(rank)
        if reason or not after.trying:
            self._core.set_reason(rank, reason)  # while it is tried again, `list` says why that is
        if not after.trying:
            forget_lost(self._core, rank)
        if rank.timer is not None:
            self._core.cancel(rank.timer)
            rank.timer = None
        # `list` shows no step of a handshake, and thousands of ranks take them at once.
        if not (before.handshake and after.handshake):
            self._core.touch(rank)


LOST_DOUBLINGS: Final = 2  # of the first pause
LOST_TRIES: Final = 28  # before the pause is doubled further
NO_CALL: Final = "its connection has ended, and it has not reconnected within {:g} s"


class ConnectorOwner(Protocol):
    """What the connector leaves to `Lifecycle`."""

    def ended(self, rank: Rank, reason: str = "") -> None:
        """The rank has had its time to call again: its process is taken to be gone."""

    def rested(self, rank: Rank) -> None:
        """A rank that was just left may be connected again."""


class Connector:
    """Opens and closes connections, and waits for the moment to try again."""

    def __init__(self, core: SessionState, transitions: Transitions, owner: ConnectorOwner) -> None:
        self._core = core
        self._transitions = transitions
        self._owner = owner

    def connect(self, rank: Rank) -> None:
        """Open the rank's one connection, unless it rests from the last one.

        An adapter that is connected to as soon as its last client has left goes deaf ("Reconnecting
        at once wedges the adapter" in docs/internals/debugpy.md).
        """
        endpoint = rank.endpoint
        if rank.resting or endpoint.way_down or (endpoint.announces and not endpoint.ready):
            return
        self._transitions.to(rank, Signal.CONNECT)
        link = self._core.number()
        rank.connection = Connection(
            link, endpoint.incarnation, direct=endpoint.dials, adapter_ready=endpoint.ready
        )
        rank.fate.exited = False
        self._core.links[link] = rank
        if endpoint.dials:
            rank.endpoint = replace(endpoint, ready=False)  # one connection is one call
        # Of one that was not lost, the process may have ended long ago: another is waited for.
        process = rank.process if rank.lost and not rank.main else ""
        self._core.out.append(
            Connect(link, rank.rank_id, endpoint.host, endpoint.port, endpoint.dials, process)
        )

    def hang_up(self, rank: Rank, reason: str) -> None:
        """Close the connection. No `disconnect` whose answer we would not wait for.

        Measured: debugpy's adapter dies of that, and with it goes the session of whoever else
        was "already debugging" the rank; a FIN alone does no harm once `attach` is answered.
        """
        link = rank.link
        if link is None:
            return
        self._core.out.append(CloseLink(link))
        self.forget(rank, reason)
        self._core.handles.expire_rank(rank.id)  # also what came while it was leaving

    def forget(self, rank: Rank, reason: str) -> None:
        """The connection has ended: whatever the rank owed over it has no answer but `reason`."""
        if rank.link is not None:
            self._core.links.pop(rank.link, None)
            rank.connection.link = None
        to_ranks.fail_pending(self._core, rank, reason)

    # The next attempt

    def try_again(self, rank: Rank) -> None:
        """Connect again after a pause, or wait for a rank that calls us."""
        if rank.endpoint.dials and not rank.endpoint.ready:
            self.await_call(rank)
        else:
            rank.timer = self._core.after(self._backoff(rank), lambda: self._again(rank))

    def _again(self, rank: Rank) -> None:
        rank.timer = None
        self.connect(rank)

    def _backoff(self, rank: Rank) -> float:
        """0.25 s doubling to 10 s, with jitter; never so soon that its adapter is overtaken.

        A rank that was attached is tried every second for half a minute, then less often: a line
        that breaks again and again may be down at two moments that lie far apart.
        """
        settings = self._core.settings
        doublings = rank.attempts
        if rank.lost and doublings > LOST_DOUBLINGS:
            doublings = max(LOST_DOUBLINGS, rank.attempts - LOST_TRIES)
        backoff = Backoff(settings.backoff_first, settings.backoff_most)
        rank.attempts += 1
        return max(settings.reconnect_gap, backoff.delay(doublings, self._core.random.random()))

    def await_call(self, rank: Rank) -> None:
        """It calls again as soon as it finds its connection gone, unless its process is."""
        limit = self._core.settings.redial_timeout
        rank.timer = self._core.after(limit, lambda: self._has_not_called(rank, limit))

    def _has_not_called(self, rank: Rank, limit: float) -> None:
        rank.timer = None
        if not rank.lost or not (rank.lost.alive or rank.endpoint.watched):
            self._owner.ended(rank, NO_CALL.format(limit))

    def rest(self, rank: Rank) -> None:
        """Its adapter needs a moment after `disconnect` before it takes another connection."""
        rank.resting = True
        self._core.after(self._core.settings.reconnect_gap, lambda: self._rested(rank))

    def _rested(self, rank: Rank) -> None:
        rank.resting = False
        self._owner.rested(rank)
