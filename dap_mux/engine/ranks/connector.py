"""The ranks' connections: one at a time for each rank, tried again with patience."""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from dap_mux.engine.messages import to_ranks
from dap_mux.engine.outputs import CloseLink, Connect, UnwatchProcess, WatchProcess
from dap_mux.engine.state.phases import Signal, step
from dap_mux.engine.state.rank import Connection, Fate, Lost, Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.endpoint import Backoff, Endpoint, is_loopback

# Lost and ending ranks: whether their processes still run, as far as can be known.
#
# debugpy's adapter says `terminated` at the end of the program, and also where pydevd has died in a
# program that runs on. Who started the rank may see its process (`Endpoint.watched`), or this
# machine's system does (`WatchProcess`). Where neither can, a rank without a way back is taken to
# have ended after a while. A program may be over and its process not: then it is in an exit hook.

DEBUGGER_ENDED: Final = "its debugger has ended"
RUNS_ON: Final = f"{DEBUGGER_ENDED}, and its process runs on without one"
UNSEEN: Final = f"{DEBUGGER_ENDED}; whether its process still runs cannot be seen from here"
ENDED: Final = "the process ended"
ENDS: Final = "its program is over, and its process is not"
NO_WAY_BACK: Final = f"{DEBUGGER_ENDED}, and it could not be reached again for {{:g}} s"


class Decisions(Protocol):
    """The decisions that the parts of this folder leave to `Lifecycle`."""

    def ended(self, rank: Rank, reason: str = "") -> None:
        """The rank's process is gone, or taken to be: it has had its time to call again."""

    def found(self, rank: Rank, reason: str) -> None:
        """It is known whether a lost process runs; `reason` is what to show."""

    def rested(self, rank: Rank) -> None:
        """A rank that was just left may be connected again."""

    def examined(self, child: Rank, *, is_tracker: bool) -> None:
        """A child has said what it is, and waits to be configured or started."""

    def attached(self, rank: Rank) -> None:
        """The rank is live."""

    def failed(self, rank: Rank, reason: str) -> None:
        """The handshake failed: hang up, and try again later."""

    def refused(self, rank: Rank, problem: str) -> None:
        """We do not debug this rank: leave it."""

    def left(self, rank: Rank) -> None:
        """It has been left, and its connection is closed."""


class ProcessWatch(Struct, eq=False):
    """Looks at the processes of lost ranks, and of those whose programs are over."""

    _core: SessionState
    _owner: Decisions

    def look(self, rank: Rank) -> None:
        """The rank is lost: find out whether its process still runs."""
        if rank.lost is None or rank.main or rank.endpoint.watched:
            return
        _unwatch(self._core, rank.lost.look)
        rank.lost.look = self._watch(rank)

    def _watch(self, rank: Rank) -> int:
        token = self._core.number()
        self._core.looks[token] = rank
        self._core.out.append(WatchProcess(token, rank.process))
        return token

    def seen(self, token: int, alive: bool | None) -> None:
        """The answer to a look, or that the process has ended since."""
        rank = self._core.looks.pop(token, None)
        if rank is not None and rank.fate.look == token:
            self._seen_ending(rank, token, alive is True)
            return
        if rank is None or rank.lost is None:
            return
        if alive is False:
            self._owner.ended(rank)
            return
        rank.lost.alive = alive is True
        if alive:
            self._core.looks[token] = rank
        if rank.lost.debugger_ended:
            self._owner.found(rank, RUNS_ON if alive else UNSEEN)
            if not alive:
                self._give_time(rank, rank.lost)

    def look_at_end(self, rank: Rank) -> None:
        """The rank's program is over: find out whether its process is, too, once.

        Until that is known it counts as `ending`. `ended` is called when it is not any more.
        """
        fate = rank.fate
        known = fate.exited or fate.vanished or rank.exit_code is not None
        if fate.look is None and rank.process and not known and not rank.endpoint.watched:
            fate.look = self._watch(rank)

    def ending(self) -> list[Rank]:
        """Return the ranks whose processes may run on without their programs."""
        return [rank for token, rank in self._core.looks.items() if rank.fate.look == token]

    def forget_fate(self, rank: Rank) -> None:
        """The rank has another process, or is to get one."""
        _unwatch(self._core, rank.fate.look)
        rank.exit_code, rank.fate = None, Fate()

    def _seen_ending(self, rank: Rank, token: int, alive: bool) -> None:
        self._owner.found(rank, ENDS if alive else ENDED)
        if alive:
            self._core.looks[token] = rank
        else:
            self._owner.ended(rank)

    def _give_time(self, rank: Rank, lost: Lost) -> None:
        limit = self._core.settings.redial_timeout
        self._core.cancel(lost.deadline)
        lost.deadline = self._core.after(limit, lambda: self._passed(rank, lost, limit))

    def _passed(self, rank: Rank, lost: Lost, limit: float) -> None:
        lost.deadline = None
        if rank.endpoint.way_down:
            self._give_time(rank, lost)  # whether it runs cannot be known
        else:
            self._owner.ended(rank, NO_WAY_BACK.format(limit))


def is_over(rank: Rank) -> bool:
    """Whether a lost rank that refuses connections has ended, as its own machine says.

    One without an adapter has its port for as long as its process runs. On loopback it may be the
    near end of a tunnel that refuses.
    """
    alone = rank.lost is not None and rank.lost.alone
    return alone and not rank.main and not is_loopback(rank.endpoint.host)


def forget_lost(core: SessionState, rank: Rank) -> None:
    """The rank is back, or its lost process does not matter any more."""
    if rank.lost is not None:
        core.cancel(rank.lost.deadline)
        _unwatch(core, rank.lost.look)
        rank.lost = None


def _unwatch(core: SessionState, look: int | None) -> None:
    if look is not None and core.looks.pop(look, None) is not None:
        core.out.append(UnwatchProcess(look))


def not_listening(rank: Rank) -> str:
    """Return what `list` says of a rank that refuses connections."""
    if rank.lost and rank.lost.alive:
        return RUNS_ON
    if rank.lost:
        return (
            f"nothing listens on {rank.endpoint} any more: the tunnel to it is down, or "
            "debugpy's adapter has ended; retrying"
        )
    return f"nothing listens on {rank.endpoint} yet"


# Whether another process is to be found where a rank was: it has been started again.
#
# That may be known before the old process is seen to end: the two are told by different programs.


def is_another(before: Endpoint, now: Endpoint) -> bool:
    """Whether a process listens there that has not before, as far as pids tell."""
    return now.ready and None not in (before.pid, now.pid) and before.pid != now.pid


def is_replaced(rank: Rank) -> bool:
    """Whether the process that its last connection led to has made room for another.

    A rank that dials is another incarnation at each call, and says its pid.
    """
    another = rank.connection.incarnation != rank.endpoint.incarnation
    return another and not rank.endpoint.dials


def expect_another(core: SessionState, rank: Rank) -> None:
    """Its old process does not matter any more, also where it is lost and was searched for."""
    if is_replaced(rank):
        forget_lost(core, rank)


# Changes of a rank's phase. All go through here; the table of them is `phases.TRANSITIONS`.


class Watcher(Protocol):
    """The rest of the engine, which is told what becomes of ranks."""

    def configuring(self, rank: Rank) -> None:
        """The rank takes breakpoints now, and does not run on before `start`."""

    def live(self, rank: Rank) -> None:
        """The rank is attached."""

    def lost(self, rank: Rank, was_live: bool) -> None:
        """The rank's connection is gone; `rank.phase` says whether its process is too."""


def change_phase(core: SessionState, rank: Rank, signal: Signal, reason: str = "") -> None:
    """Take the step that the table has for this signal; end what belongs to the phase before."""
    before, after = rank.phase, step(rank.phase, signal)
    rank.phase = after
    core.phase_changed(rank)
    if reason or not after.trying:
        core.set_reason(rank, reason)  # while it is tried again, `list` says why that is
    if not after.trying:
        forget_lost(core, rank)
    core.cancel(rank.timer)
    # `list` shows no step of a handshake, and thousands of ranks take them at once.
    if not (before.handshake and after.handshake):
        core.touch(rank)


LOST_DOUBLINGS: Final = 2  # of the first pause
LOST_TRIES: Final = 28  # before the pause is doubled further
NO_CALL: Final = "its connection has ended, and it has not reconnected within {:g} s"


class Connector(Struct, eq=False):
    """Opens and closes connections, and waits for the moment to try again."""

    _core: SessionState
    _owner: Decisions

    def connect(self, rank: Rank) -> None:
        """Open the rank's one connection, unless it rests from the last one.

        An adapter that is connected to as soon as its last client has left goes deaf ("Reconnecting
        at once wedges the adapter" in docs/internals/debugpy.md).
        """
        endpoint = rank.endpoint
        if rank.resting or endpoint.way_down or (endpoint.announces and not endpoint.ready):
            return
        change_phase(self._core, rank, Signal.CONNECT)
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
            rank.timer = self._core.after(self._backoff(rank), partial(self.connect, rank))

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
        if not rank.lost or not (rank.lost.alive or rank.endpoint.watched):
            self._owner.ended(rank, NO_CALL.format(limit))

    def rest(self, rank: Rank) -> None:
        """Its adapter needs a moment after `disconnect` before it takes another connection."""
        rank.resting = True
        self._core.after(self._core.settings.reconnect_gap, lambda: self._rested(rank))

    def _rested(self, rank: Rank) -> None:
        rank.resting = False
        self._owner.rested(rank)
