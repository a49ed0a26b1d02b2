"""How a rank is found, attached, lost, found again, left and ended."""

from __future__ import annotations

from functools import partial
from typing import Final

from dap_mux.engine.inputs import LinkDown
from dap_mux.engine.ranks.connector import (
    DEBUGGER_ENDED,
    ENDED,
    Connector,
    ProcessWatch,
    Watcher,
    change_phase,
    expect_another,
    is_another,
    is_over,
    is_replaced,
    not_listening,
)
from dap_mux.engine.ranks.deaths import Subprocesses, end_of, reason_of
from dap_mux.engine.ranks.handshake import Handshake, Heartbeat
from dap_mux.engine.state.phases import AfterLeaving, Phase, Signal
from dap_mux.engine.state.rank import Lost, Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.endpoint import Endpoint
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import RankId

ENDING_GRACE: Final = 1.0  # s between a process's end and the end of its adapter's last words
LEFT: Final = frozenset({Phase.IDLE, Phase.RELEASED})


# `Lifecycle` decides; its parts carry out. Their rules guard against the ways in which debugpy was
# seen to lose a rank: one connection at a time, which is kept (`connector`); no `attach` before the
# adapter is ready, and children kept from waiting before the rank runs on (`handshake`);
# `disconnect` and its answer before the connection ends (there, too), and a pause before the next
# one. One more is `control`'s: `continue` only for a rank that is stopped.
class Lifecycle:
    """The engine's part that decides what becomes of ranks."""

    def __init__(self, core: SessionState, watcher: Watcher) -> None:
        self._core = core
        self._watcher = watcher
        self._connector = connector = Connector(core, self)
        self.handshake = Handshake(core, connector, self, watcher, Heartbeat(core))
        self.subprocesses = Subprocesses(core)
        self.processes = ProcessWatch(core, self)

    # Coming

    def known(self, id: RankId, endpoint: Endpoint) -> None:
        """A rank exists at this endpoint; a known one may have moved, or come back."""
        core = self._core
        rank = core.ranks.get(id)
        if rank is None:
            rank = Rank(id, endpoint)
            core.add(rank)
        elif core.flow.restarting:
            self._restarted(rank)
        elif is_another(rank.endpoint, endpoint):
            self._replaced(rank)
        before = self._now_at(rank, endpoint)
        if endpoint.incarnation != before.incarnation:
            self._another_incarnation(rank)
        if endpoint.dials:
            self._called(rank)
        back = rank.phase is Phase.GONE and endpoint.ready
        if rank.phase in (Phase.IDLE, Phase.WAITING, Phase.GONE):
            self._way_changed(rank, before)
        wanted = core.flow.wanted or (core.flow.left and rank.held_back)
        if wanted and (rank.phase in (Phase.IDLE, Phase.WAITING) or back):
            self.processes.forget_fate(rank)
            self.connect(rank)

    def _now_at(self, rank: Rank, endpoint: Endpoint) -> Endpoint:
        """It is there from now on; return where it was."""
        before, rank.endpoint = rank.endpoint, endpoint
        self._core.ranks_changed()
        if before.shown != endpoint.shown:
            self._core.touch(rank)
        return before

    def _another_incarnation(self, rank: Rank) -> None:
        """Its old process has ended, or will be seen to end over the connection that it has."""
        if rank.phase is Phase.GONE:
            change_phase(self._core, rank, Signal.RETURN)
        elif rank.phase is Phase.WAITING:
            expect_another(self._core, rank)

    def _called(self, rank: Rank) -> None:
        """It calls us, or has hung up before its call was taken up: is it still there?"""
        if rank.phase in (Phase.IDLE, Phase.RELEASED):
            self._core.cancel(rank.timer)
            if rank.endpoint.port and not rank.endpoint.ready:
                self._connector.await_call(rank)

    def _way_changed(self, rank: Rank, before: Endpoint) -> None:
        """While there is no way `list` says why; a new one is tried with new patience.

        So it does of a rank that has ended: perhaps another is coming in its place.
        """
        if rank.endpoint.way_down:
            self._core.set_reason(rank, rank.endpoint.way_down)
        elif before.way_down and rank.phase is not Phase.GONE:
            self._core.set_reason(rank, "")
            rank.attempts = 0

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
        self.processes.forget_fate(rank)
        change_phase(self._core, rank, Signal.RETURN)

    def connect(self, rank: Rank) -> None:
        """Connect a rank; one that was left waits until its workers are, too.

        Its adapter tells each new client, once, of the processes that no client debugs then.
        """
        if rank.phase not in LEFT or not self.subprocesses.being_left(rank):
            self._connector.connect(rank)

    def rested(self, rank: Rank) -> None:
        """It was left, and its adapter has had its moment: a client may have come meanwhile."""
        asked_for = rank.after_leaving is AfterLeaving.RETURN
        back = rank.phase is Phase.RELEASED and asked_for
        if self._core.flow.wanted and (rank.phase is Phase.IDLE or back):
            self.connect(rank)

    def connect_all(self, arguments: Body) -> None:
        """The first controller attaches: every rank that is not gone is connected."""
        flow = self._core.flow
        flow.wanted, flow.left, flow.arguments = True, False, arguments
        for rank in self._core.sorted_ranks():
            if rank.after_leaving is AfterLeaving.STAY_AWAY:  # one that is being released, too
                rank.after_leaving = AfterLeaving.RETURN
            if rank.phase in (Phase.IDLE, Phase.RELEASED):
                self.connect(rank)

    def let_all_go(self) -> None:
        """The last controller has left: every rank runs on, those to come as well.

        One that has not begun is told so in a handshake that goes on, or is made for that alone.
        """
        self._core.flow.wanted, self._core.flow.left = False, True
        for rank in self._core.sorted_ranks():
            if rank.phase is not Phase.RELEASED:
                self._core.later(partial(self._let_go, rank))

    def _let_go(self, rank: Rank) -> None:
        if not rank.held_back or rank.phase.live or rank.phase is Phase.GONE:
            self.leave(rank, release=False)
        elif rank.phase is Phase.CONFIGURING:
            self.handshake.start(rank)
        elif rank.phase is Phase.IDLE:
            self.connect(rank)

    def start_all(self) -> None:
        """The clients have configured: every rank that waits for it runs on."""
        for rank in self._core.sorted_ranks():
            if rank.phase is Phase.CONFIGURING:
                self.handshake.start(rank)

    # Attaching

    def announced(self, parent: Rank, body: Body) -> None:
        """A rank, or a child of it, says that a process of its own waits (`debugpyAttach`)."""
        child = self.subprocesses.announced(parent, body)
        if child.phase in (Phase.IDLE, Phase.WAITING):
            self.connect(child)

    def examined(self, child: Rank, *, is_tracker: bool) -> None:
        """A child has said what it is: debug it as a worker, or let it run on."""
        if child.hidden and (is_tracker or not self.subprocesses.is_wanted(child)):
            self.handshake.start(child)
            return
        self.subprocesses.adopt(child)
        self.handshake.configure(child)

    def attached(self, rank: Rank) -> None:
        """It is live. One that nobody debugs has been let go, and is left politely, too."""
        if rank.hidden or not self._core.flow.wanted:
            self.leave(rank, release=False)
        else:
            self._watcher.live(rank)

    def refused(self, rank: Rank, problem: str) -> None:
        """It runs on as it was found; a client may have it attached again."""
        self._core.warn("rank", problem, rank)
        rank.connection.refusal, rank.after_leaving = problem, AfterLeaving.STAY_AWAY
        change_phase(self._core, rank, Signal.LEAVE)
        self._watcher.lost(rank, False)
        self.handshake.disconnect(rank)

    # Losing

    def failed(self, rank: Rank, reason: str) -> None:
        """The handshake failed: hang up and try again later."""
        self._core.warn("rank", reason, rank)
        self._connector.hang_up(rank, reason)
        self._retry(rank, reason)

    def _retry(self, rank: Rank, reason: str, *, debugger_ended: bool = False) -> None:
        if rank.main and not _comes_back(rank, rank.main):
            self.ended(rank, reason)
            return
        was_live = rank.phase.live
        expect_another(self._core, rank)
        newly = rank.lost is None and (was_live or debugger_ended) and not is_replaced(rank)
        if newly:
            rank.lost = Lost(alone=rank.connection.direct)
        if rank.lost:
            newly |= debugger_ended and not rank.lost.debugger_ended
            rank.lost.debugger_ended |= debugger_ended
            if rank.lost.debugger_ended:  # which says more than that it is refused
                reason = DEBUGGER_ENDED if newly else rank.reason
        change_phase(self._core, rank, Signal.DOWN, rank.endpoint.way_down or reason)
        self._connector.try_again(rank)
        self._watcher.lost(rank, was_live)
        if newly:
            self.processes.look(rank)

    def found(self, rank: Rank, reason: str) -> None:
        """It is known how the process of a lost or ending rank is."""
        self._core.set_reason(rank, rank.endpoint.way_down or reason)

    # Going

    def down(self, rank: Rank, how: LinkDown) -> None:
        """The connection failed or ended.

        One that breaks before the rank is attached, again and again, is tried ever less often.
        """
        self._connector.forget(rank, how.reason)
        if rank.phase.leaving:
            self.left(rank)
        elif how.over:
            self._over(rank)
        elif rank.phase not in (Phase.GONE, Phase.WAITING, Phase.IDLE, Phase.RELEASED):
            reason = not_listening(rank) if how.refused else how.reason
            over = how.refused and is_over(rank)
            self._retry(rank, reason, debugger_ended=over)

    def leave(self, rank: Rank, *, release: bool) -> None:
        """Detach; the rank runs on. `release`: on request, so it stays away until asked for."""
        if rank.phase is Phase.GONE or rank.phase.leaving:
            return
        self._leave_workers(rank)
        rank.after_leaving = AfterLeaving.STAY_AWAY if release else AfterLeaving.RETURN
        if rank.phase is Phase.IDLE:
            if release:
                change_phase(self._core, rank, Signal.RELEASE, "released")
        elif rank.phase is Phase.WAITING:
            change_phase(self._core, rank, Signal.RELEASE if release else Signal.LEAVE)
            if rank.main:
                self._remove(rank)
        elif rank.phase is not Phase.RELEASED:
            self.handshake.leave(rank)

    def drop(self, rank: Rank) -> None:
        """Forget a rank; it runs on, and its process may end unseen."""
        self.leave(rank, release=True)
        if rank.phase.leaving:
            rank.after_leaving = AfterLeaving.FORGET
        else:
            self.processes.forget_fate(rank)
            self._remove(rank)

    def debugger_ended(self, rank: Rank) -> None:
        """Its adapter has said `terminated`: the program is over, or pydevd alone."""
        program_over = rank.connection.program_over or rank.fate.exited
        if rank.main or program_over or rank.exit_code is not None:
            self._over(rank)
            return
        self._connector.hang_up(rank, DEBUGGER_ENDED)
        self._retry(rank, DEBUGGER_ENDED, debugger_ended=True)

    def exited(self, rank: Rank, code: int | None, how: str = "") -> None:
        """Its launcher saw the process end; the adapter's last words may still be under way."""
        rank.exit_code, rank.fate.exited = code, True
        rank.fate.end = how or ("" if code is None else end_of(code))
        self._core.touch(rank)
        if rank.phase is Phase.GONE or rank.link is None:
            self.ended(rank)
        else:
            process = rank.process_now
            self._core.after(ENDING_GRACE, lambda: self._ended_for_sure(rank, process))

    def _ended_for_sure(self, rank: Rank, process: tuple[int | None, str]) -> None:
        if rank.process_now == process and rank.phase is not Phase.GONE:
            self.ended(rank)

    def _over(self, rank: Rank) -> None:
        """The process that its connection led to is gone; another may be in its place already."""
        if rank.main or not is_replaced(rank):
            self.ended(rank)
            return
        self._replaced(rank)
        if self._core.flow.wanted:
            self.connect(rank)

    def ended(self, rank: Rank, reason: str = "") -> None:
        """The rank's process is gone."""
        if rank.phase is Phase.GONE:
            self._core.set_reason(rank, reason_of(rank) or rank.reason)
            self._watcher.lost(rank, False)
            return
        rank.fate.vanished, rank.fate.held = rank.lost is not None, None
        was_live = rank.phase.live
        self._leave_workers(rank)
        self._connector.hang_up(rank, ENDED)
        why = reason_of(rank) or rank.endpoint.way_down or ENDED  # whichever is told first
        change_phase(self._core, rank, Signal.END, reason or why)
        rank.numbers.clear()
        self._watcher.lost(rank, was_live)
        if rank.main:
            self._remove(rank)

    def left(self, rank: Rank) -> None:
        """Its connection has ended politely, or broken on the way there."""
        if rank.after_leaving is AfterLeaving.RETURN:
            change_phase(self._core, rank, Signal.DOWN)
        else:
            change_phase(self._core, rank, Signal.RELEASE, rank.connection.refusal or "released")
        if rank.main or rank.after_leaving is AfterLeaving.FORGET:
            self._remove(rank)
            return
        if rank.endpoint.dials and not rank.endpoint.ready:
            self._connector.await_call(rank)
        self._connector.rest(rank)

    def _leave_workers(self, main: Rank) -> None:
        """The rank is left, or has ended: its workers run on without us."""
        for worker in self._core.workers_of(main):
            self.leave(worker, release=True)

    def _remove(self, rank: Rank) -> None:
        self._core.cancel(rank.timer)
        self._core.remove(rank)
        self._watcher.lost(rank, False)
        self.subprocesses.forget(rank)
        if rank.main and rank.main.phase in LEFT and not rank.main.resting:
            self._connector.rest(rank.main)  # it may be wanted again, and has waited for this


def _comes_back(worker: Rank, main: Rank) -> bool:
    """Whether to connect to a worker again; its rank, attached again, announces it anew.

    One that is not debugged waits for us alone, and hangs until it is told to run on.
    """
    return main.phase is not Phase.GONE if worker.hidden else main.link is not None
