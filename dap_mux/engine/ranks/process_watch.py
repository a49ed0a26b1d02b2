"""Lost and ending ranks: whether their processes still run, as far as can be known.

debugpy's adapter says `terminated` at the end of the program, and also where pydevd has died in a
program that runs on. Who started the rank may see its process (`Endpoint.watched`), or this
machine's system does (`WatchProcess`). Where neither can, a rank without a way back is taken to
have ended after a while. A program may be over and its process not: then it is in an exit hook.
"""

from __future__ import annotations

from typing import Final, Protocol

from dap_mux.addresses import is_loopback
from dap_mux.engine.endpoint import Endpoint
from dap_mux.engine.outputs import UnwatchProcess, WatchProcess
from dap_mux.engine.state.rank import Fate, Lost, Rank
from dap_mux.engine.state.session import SessionState

DEBUGGER_ENDED: Final = "its debugger has ended"
RUNS_ON: Final = f"{DEBUGGER_ENDED}, and its process runs on without one"
UNSEEN: Final = f"{DEBUGGER_ENDED}; whether its process still runs cannot be seen from here"
ENDED: Final = "the process ended"
ENDS: Final = "its program is over, and its process is not"
NO_WAY_BACK: Final = f"{DEBUGGER_ENDED}, and it could not be reached again for {{:g}} s"


class ProcessOwner(Protocol):
    """What a look at a process leads to; `Lifecycle` decides it."""

    def ended(self, rank: Rank, reason: str = "") -> None:
        """The process is over."""

    def found(self, rank: Rank, reason: str) -> None:
        """It is known whether the process runs; `reason` is what to show."""


class ProcessWatch:
    """Looks at the processes of lost ranks, and of those whose programs are over."""

    def __init__(self, core: SessionState, owner: ProcessOwner) -> None:
        self._core = core
        self._owner = owner
        self.ending: dict[int, Rank] = {}  # whose processes may run on without their programs

    def look(self, rank: Rank) -> None:
        """The rank is lost: find out whether its process still runs."""
        if rank.lost is None or rank.main or rank.endpoint.watched:
            return
        _unwatch(self._core, rank.lost.look)
        rank.lost.look = token = self._core.number()
        self._core.looks[token] = rank
        self._core.out.append(WatchProcess(token, rank.process))

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
            fate.look = token = self._core.number()
            self._core.looks[token] = self.ending[token] = rank
            self._core.out.append(WatchProcess(token, rank.process))

    def forget_fate(self, rank: Rank) -> None:
        """The rank has another process, or is to get one."""
        if rank.fate.look is not None:
            self.ending.pop(rank.fate.look, None)
            _unwatch(self._core, rank.fate.look)
        rank.exit_code, rank.fate = None, Fate()

    def _seen_ending(self, rank: Rank, token: int, alive: bool) -> None:
        self._owner.found(rank, ENDS if alive else ENDED)
        if alive:
            self._core.looks[token] = rank
        else:
            self.ending.pop(token, None)
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
