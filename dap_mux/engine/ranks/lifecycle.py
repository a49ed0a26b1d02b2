"""How a rank is found, attached, lost, found again, left and ended.

Every rule in here, in `handshake` and in `links` is one of FACTS' five ways to lose a rank: one
connection that is kept (K2), no `attach` before the adapter is ready (K3), `disconnect`, its
answer and a pause before the next connection (K4), children kept out of the debugger before the
rank runs on (K5). K1 is `control`'s.
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.endpoint import Endpoint
from dap_mux.engine.inputs import LinkDown
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.ranks.attach_expression import CHILDREN
from dap_mux.engine.ranks.connector import Watcher
from dap_mux.engine.ranks.deaths import reason_of
from dap_mux.engine.ranks.handshake import MAY_WAIT
from dap_mux.engine.ranks.process_watch import DEBUGGER_ENDED, RUNS_ON
from dap_mux.engine.ranks.subprocesses import Children
from dap_mux.engine.state.model import Body, Fate, Rank, Reply
from dap_mux.engine.state.phases import Phase, Signal
from dap_mux.rank_sets import RankId

__all__ = ["Lifecycle", "Watcher"]

ENDED: Final = "the process ended"
ENDING_GRACE: Final = 1.0  # s between a process's end and the end of its adapter's last words


class Lifecycle(Children):
    """The engine's part that owns the ranks' connections."""

    # Coming

    def known(self, id: RankId, endpoint: Endpoint) -> None:
        """A rank exists at this endpoint; a known one may have moved, or come back."""
        core = self._core
        rank = core.ranks.get(id)
        if rank is None:
            rank = Rank(id, endpoint)
            core.add(rank)
            self._watcher.moved(rank)
        elif core.flow.restarting:
            self._restarted(rank)
        elif endpoint.ready and _is_another(rank.endpoint.pid, endpoint.pid):
            self._replaced(rank)
        before, rank.endpoint = rank.endpoint, endpoint
        core.ranks_changed()
        if rank.phase is Phase.GONE and endpoint.incarnation != before.incarnation:
            self._to(rank, Signal.RETURN)
        if endpoint.dials:
            self._called(rank)
        back = rank.phase is Phase.GONE and endpoint.ready
        if rank.phase in (Phase.IDLE, Phase.WAITING, Phase.GONE):
            self._way_changed(rank, before)
        if self.wanted and (rank.phase in (Phase.IDLE, Phase.WAITING) or back):
            rank.exit_code, rank.fate = None, Fate()
            self.connect(rank)

    def _called(self, rank: Rank) -> None:
        """It calls us, or has hung up before its call was taken up: is it still there?"""
        if rank.phase in (Phase.IDLE, Phase.RELEASED):
            self._core.cancel(rank.timer)
            rank.timer = None
            if rank.endpoint.port and not rank.endpoint.ready:
                self.await_call(rank)

    def _way_changed(self, rank: Rank, before: Endpoint) -> None:
        """While there is no way `list` says why; a new one is tried with new patience.

        So it does of a rank that has ended: perhaps another is coming in its place.
        """
        if rank.endpoint.way_down:
            rank.reason = rank.endpoint.way_down
            self._watcher.moved(rank)
        elif before.way_down and rank.phase is not Phase.GONE:
            rank.reason = ""
            rank.attempts = 0
            self._watcher.moved(rank)

    def _replaced(self, rank: Rank) -> None:
        """Its launcher has started it again: a new process listens, and the old one has ended.

        Between the two the session has this rank still, even where it has no other.
        """
        self._core.flow.restarting = True
        self._restarted(rank)
        self._core.flow.restarting = False

    def _restarted(self, rank: Rank) -> None:
        """Its new process is started, and will say when it listens; the old one has ended."""
        self.ended(rank)
        rank.exit_code, rank.fate = None, Fate()
        self._to(rank, Signal.RETURN)

    def connect_all(self, arguments: Body) -> None:
        """The first controller attaches: every rank that is not gone is connected."""
        self.wanted = True
        self.arguments = arguments
        for rank in self._core.sorted_ranks():
            rank.releasing = False  # one that is being released comes back too
            if rank.phase in (Phase.IDLE, Phase.RELEASED):
                self.connect(rank)

    def start_all(self) -> None:
        """The clients have configured: every rank that waits for it runs on."""
        for rank in self._core.sorted_ranks():
            if rank.phase is Phase.CONFIGURING:
                self._start(rank)

    # Going

    def down(self, rank: Rank, how: LinkDown) -> None:
        """The connection failed or ended.

        A line that breaks again and again works in between: no reason to try it ever less often.
        """
        self._core.links.pop(rank.link or 0, None)
        rank.link = None
        if rank.offers is not None:
            rank.attempts = 0
        to_ranks.fail_pending(self._core, rank, how.reason)
        if rank.phase is Phase.LEAVING:
            self._left(rank)
        elif how.over:
            self.ended(rank)
        elif rank.phase not in (Phase.GONE, Phase.WAITING, Phase.IDLE, Phase.RELEASED):
            self._retry(rank, _nobody_there(rank) if how.refused else how.reason)

    def leave(self, rank: Rank, *, release: bool) -> None:
        """Detach; the rank runs on. `release`: on request, so it stays away until asked for."""
        if rank.phase in (Phase.GONE, Phase.LEAVING):
            return
        self._leave_workers(rank)
        rank.releasing = release
        if rank.phase is Phase.IDLE:
            if release:
                self._to(rank, Signal.RELEASE, "released")
        elif rank.phase is Phase.WAITING:
            self._to(rank, Signal.RELEASE if release else Signal.LEAVE)
            if rank.main:
                self._remove(rank)
        elif rank.phase is not Phase.RELEASED:
            self._depart(rank)

    def _depart(self, rank: Rank) -> None:
        """An adapter that is left before `attach` closes its port for ever (measured): go on."""
        rank.leaving_early = rank.phase in (Phase.CONNECTING, Phase.GREETING)
        was_live, stop = rank.phase is Phase.LIVE, rank.stop
        # A child that was never told to run waits for ever.
        runs_on = rank.phase in (Phase.STARTING, Phase.LIVE) or (
            rank.phase is Phase.CONFIGURING and rank.main is not None
        )
        self._to(rank, Signal.LEAVE)
        if runs_on:
            self._run_on(rank)
        if stop is not None and stop.reason == "exception":
            # Left alone there, a rank takes it for a broken tunnel and is held for who comes next.
            to_ranks.ask(
                self._core, rank, "continue", {"threadId": stop.thread}, lambda reply: None
            )
        self._watcher.lost(rank, was_live)
        if was_live and self.debugs_children:  # nobody will answer for its next child
            self._evaluate(rank, CHILDREN, self._children_freed)
        if not rank.leaving_early:
            self._say_goodbye(rank)
        elif rank.offers is not None:
            self._await_adapter(rank)

    def _children_freed(self, rank: Rank, reply: Reply) -> None:
        if not reply.ok:
            self._core.warn("rank", MAY_WAIT, rank)

    def drop(self, rank: Rank) -> None:
        """Forget a rank; it runs on, and its process may end unseen."""
        self.leave(rank, release=True)
        if rank.phase is Phase.LEAVING:
            rank.dropping = True
        else:
            self._remove(rank)

    def debugger_ended(self, rank: Rank) -> None:
        """Its adapter has said `terminated`: the program is over, or pydevd alone."""
        signs = rank.signs
        if rank.main or signs.program_over or signs.exited or rank.exit_code is not None:
            self.ended(rank)
            return
        signs.debugger_ended = True
        self._forget_link(rank, DEBUGGER_ENDED)
        self._retry(rank, DEBUGGER_ENDED)

    def exited(self, rank: Rank, code: int | None, how: str = "") -> None:
        """Its launcher saw the process end; the adapter's last words may still be under way."""
        rank.exit_code, rank.signs.exited = code, True
        rank.fate.end = how or ("" if code is None else _end_of(code))
        if rank.phase is Phase.GONE or rank.link is None:
            self.ended(rank)
        else:
            endpoint = rank.endpoint
            self._core.after(ENDING_GRACE, lambda: self._ended_for_sure(rank, endpoint))

    def _ended_for_sure(self, rank: Rank, endpoint: Endpoint) -> None:
        now = rank.endpoint
        same = (now.pid, now.incarnation) == (endpoint.pid, endpoint.incarnation)
        if same and rank.phase is not Phase.GONE:
            self.ended(rank)

    def ended(self, rank: Rank, reason: str = "") -> None:
        """The rank's process is gone."""
        if rank.phase is Phase.GONE:
            rank.reason = reason_of(rank) or rank.reason
            self._watcher.moved(rank)
            self._watcher.lost(rank, False)
            return
        rank.fate.vanished, rank.fate.held = rank.lost, None
        was_live = rank.phase is Phase.LIVE
        self._leave_workers(rank)
        self._forget_link(rank, ENDED)
        self._to(rank, Signal.END, reason or reason_of(rank) or ENDED)
        rank.numbers.clear()
        self._watcher.lost(rank, was_live)
        if rank.main:
            self._remove(rank)


def _end_of(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _is_another(before: int | None, now: int | None) -> bool:
    """Whether these are two processes, as far as their pids tell."""
    return None not in (before, now) and before != now


def _nobody_there(rank: Rank) -> str:
    if rank.signs.alive:
        return RUNS_ON
    if rank.lost:
        return (
            f"nothing listens on {rank.endpoint} any more: the tunnel to it is down, or "
            "debugpy's adapter has ended; tried again"
        )
    return f"nothing listens on {rank.endpoint} yet"
