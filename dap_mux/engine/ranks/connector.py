"""The ranks' connections: opened once, retried with patience, ended politely.

The transitions themselves are a table in `phases`; every change of phase goes through `_to`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Protocol

from dap_mux.engine.messages import to_ranks
from dap_mux.engine.outputs import CloseLink, Connect
from dap_mux.engine.ranks.process_watch import DEBUGGER_ENDED, ProcessWatch
from dap_mux.engine.state.model import Body, Rank
from dap_mux.engine.state.phases import Phase, Signal, step
from dap_mux.engine.state.session import Core

LOST_DOUBLINGS: Final = 3  # of the first pause
LOST_TRIES: Final = 14  # before the pause is doubled further
NO_CALL: Final = "its connection has ended, and it has not called again within {:g} s"
EVALUATE_GRACE: Final = 0.8  # s; then a rank must run on (R7), if untaught never to come back


class Watcher(Protocol):
    """Who is told what becomes of ranks (the session part of the engine)."""

    def configuring(self, rank: Rank) -> None:
        """The rank takes breakpoints now, and does not run on before `start`."""

    def live(self, rank: Rank) -> None:
        """The rank is attached."""

    def lost(self, rank: Rank, was_live: bool) -> None:
        """The rank's connection is gone; `rank.phase` says whether its process is too."""

    def moved(self, rank: Rank) -> None:
        """Anything that `list` shows of a rank has changed."""


class Links:
    """What `Handshake` and `Lifecycle` build on: connecting, retrying, taking leave."""

    def __init__(self, core: Core, watcher: Watcher) -> None:
        self._core = core
        self._watcher = watcher
        self.arguments: Body = {}  # of the first controller's `attach`, for the ranks
        self.wanted = False  # a controller has asked to attach
        self.processes = ProcessWatch(core, self.ended, self._found)

    @property
    def debugs_children(self) -> bool:
        """Whether processes that ranks start are debugged: the first controller's word."""
        return self.arguments.get("subProcess") is True

    def _to(self, rank: Rank, signal: Signal, reason: str = "") -> None:
        rank.phase = step(rank.phase, signal)
        if reason or not rank.phase.trying:
            rank.reason = reason  # while it is tried again, `list` says why that is
        rank.lost = rank.lost and rank.phase.trying
        if not rank.lost:
            self._core.cancel(rank.signs.deadline)
            rank.signs.not_lost()
        self._core.cancel(rank.timer)
        rank.timer = None
        self._watcher.moved(rank)

    def connect(self, rank: Rank) -> None:
        """Open the rank's one connection (R2), unless it rests from the last one (K4)."""
        endpoint = rank.endpoint
        if rank.resting or endpoint.way_down or (endpoint.announces and not endpoint.ready):
            return
        self._to(rank, Signal.CONNECT)
        rank.link = self._core.number()
        rank.offers, rank.adapter_ready, rank.seq = None, endpoint.ready, 0
        rank.runs_on = False
        rank.signs.new_connection()
        self._core.links[rank.link] = rank
        if endpoint.dials:
            rank.endpoint = replace(endpoint, ready=False)  # one connection is one call
        # Of one that was not lost, the process may have ended long ago: another is waited for.
        process = rank.process if rank.lost and not rank.main else ""
        self._core.out.append(
            Connect(rank.link, rank.rank_id, endpoint.host, endpoint.port, endpoint.dials, process)
        )

    # Losing

    def _give_up(self, rank: Rank, reason: str) -> None:
        """The handshake failed: hang up and try again later (R4)."""
        self._core.warn("rank", reason, rank)
        self._forget_link(rank, reason)
        self._retry(rank, reason)

    def _retry(self, rank: Rank, reason: str) -> None:
        if rank.main and not self._comes_back(rank, rank.main):
            self.ended(rank, reason)
            return
        was_live = rank.phase is Phase.LIVE
        newly = not rank.lost and (was_live or rank.signs.debugger_ended)
        rank.lost = rank.lost or newly
        why = DEBUGGER_ENDED if newly else rank.reason  # which is more than that it is refused
        reason = why if rank.signs.debugger_ended else reason
        self._to(rank, Signal.DOWN, rank.endpoint.way_down or reason)
        if rank.endpoint.dials and not rank.endpoint.ready:
            self.await_call(rank)
        else:
            rank.timer = self._core.after(self._backoff(rank), lambda: self._again(rank))
        self._watcher.lost(rank, was_live)
        if newly:
            self.processes.look(rank)

    def await_call(self, rank: Rank) -> None:
        """It calls again as soon as it finds its connection gone, unless its process is."""
        limit = self._core.settings.redial_timeout
        rank.timer = self._core.after(limit, lambda: self._has_not_called(rank, limit))

    def _has_not_called(self, rank: Rank, limit: float) -> None:
        rank.timer = None
        if not rank.lost or not (rank.signs.alive or rank.endpoint.watched):
            self.ended(rank, NO_CALL.format(limit))

    def _comes_back(self, worker: Rank, main: Rank) -> bool:
        """Whether to connect to a worker again; its rank, attached again, announces it anew.

        One that nobody debugs waits for us alone, and hangs until it is told to run on.
        """
        return main.phase is not Phase.GONE if worker.hidden else main.link is not None

    def _found(self, rank: Rank, reason: str) -> None:
        """It is known how the process of a lost rank is."""
        rank.reason = rank.endpoint.way_down or reason
        self._watcher.moved(rank)

    def ended(self, rank: Rank, reason: str = "") -> None:
        """The process is gone (`Lifecycle`)."""
        raise NotImplementedError

    def _again(self, rank: Rank) -> None:
        rank.timer = None
        self.connect(rank)

    def _backoff(self, rank: Rank) -> float:
        """0.25 s doubling to 10 s, with jitter; never so soon that its adapter is overtaken.

        A rank that was attached is tried every 2 s for half a minute before it is tried less often:
        a line that breaks again and again may be down at two moments that lie far apart.
        """
        settings = self._core.settings
        doublings = min(rank.attempts, 16)
        if rank.lost and doublings > LOST_DOUBLINGS:
            doublings = max(LOST_DOUBLINGS, rank.attempts - LOST_TRIES)
        limit = min(settings.backoff_first * 2.0 ** min(doublings, 16), settings.backoff_most)
        rank.attempts += 1
        return max(settings.reconnect_gap, limit * self._core.random.uniform(0.75, 1.0))

    def _forget_link(self, rank: Rank, reason: str) -> None:
        """Hang up. No `disconnect` whose answer we would not wait for.

        Measured: debugpy's adapter dies of that, and with it goes the session of whoever else
        was "already debugging" the rank; a FIN alone does no harm once `attach` is answered.
        """
        if rank.link is None:
            return
        self._core.links.pop(rank.link, None)
        self._core.out.append(CloseLink(rank.link))
        rank.link = None
        to_ranks.fail_pending(self._core, rank, reason)
        self._core.handles.expire_rank(rank.id)  # also what came while it was leaving

    # Taking leave

    def _say_goodbye(self, rank: Rank) -> None:
        """Wait for evaluates: one answered after `disconnect` ends debugpy's adapter (measured).

        Unless the rank has learned better (`lessons.FORGET`).
        """
        rank.leaving_early = False
        to_ranks.when_answered(
            self._core, rank, "evaluate", lambda: self._disconnect(rank), EVALUATE_GRACE
        )

    def _disconnect(self, rank: Rank) -> None:
        """`disconnect`, its answer, then the end of the connection (K4)."""
        limit = self._core.settings.leave_timeout
        arguments = {"restart": False, "terminateDebuggee": False}
        to_ranks.ask(
            self._core, rank, "disconnect", arguments, lambda reply: self._close(rank), limit
        )

    def _close(self, rank: Rank) -> None:
        if rank.link is not None and rank.phase is Phase.LEAVING:
            self._forget_link(rank, "released")
            self._left(rank)

    def _left(self, rank: Rank) -> None:
        release, rank.leaving_early = rank.releasing, False
        self._to(
            rank,
            Signal.RELEASE if release else Signal.DOWN,
            (rank.refused or "released") if release else "",
        )
        if rank.dropping:
            self._remove(rank)
            return
        if rank.endpoint.dials and not rank.endpoint.ready:
            self.await_call(rank)
        self._rest(rank)

    def _rest(self, rank: Rank) -> None:
        """Its adapter needs a moment before anybody comes again (K4)."""
        rank.resting = True
        self._core.after(self._core.settings.reconnect_gap, lambda: self._rested(rank))

    def _rested(self, rank: Rank) -> None:
        rank.resting = False
        back = rank.phase is Phase.RELEASED and not rank.releasing
        if self.wanted and (rank.phase is Phase.IDLE or back):
            self.connect(rank)

    def _remove(self, rank: Rank) -> None:
        self._core.cancel(rank.timer)
        rank.timer = None
        self._core.remove(rank)
        self._core.ranks_changed()
        self._watcher.lost(rank, False)
