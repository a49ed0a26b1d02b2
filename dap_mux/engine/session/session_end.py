"""When the session is over: `terminated`, once, and what is waited for before."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Final

from msgspec import Struct

from dap_mux.engine.clients.client_inputs import ClientLeave
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.to_clients import Progress, notice
from dap_mux.engine.messages.to_ranks import Result, gather_results
from dap_mux.engine.outputs import Finished, RestartJob
from dap_mux.engine.ranks.deaths import Deaths
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.session.rank_output import RankOutput
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.stops.control import Control
from dap_mux.pure.errors import UsageError
from dap_mux.pure.protocol.types import RestartArguments
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import name_ranks
from dap_mux.pure.rank_sets.world import DebuggeeId
from dap_mux.pure.remote import REPLAY_PLACE

MAX_WAIT_S: Final = 10.0  # without a rank, before users are told that others are waited for
WAITS: Final = (
    "every rank has ended, but the job has not: the session waits for ranks that the job restarts"
)


class SessionEnd(Struct, eq=False):
    """The engine's part that ends the session: with its last rank, its job, or at once."""

    _core: SessionState
    _lifecycle: Lifecycle
    _leave: ClientLeave
    _output: RankOutput
    _progress: Progress
    _deaths: Deaths
    _timer: int | None = None

    def consider(self) -> None:
        """A rank has gone, or the job has ended: was that the last?"""
        flow, settings = self._core.flow, self._core.settings
        if flow.ended or flow.restarting or not self._all_gone():
            return
        if self._lifecycle.processes.ending():
            return
        ranks = self._core.mains.values()
        if settings.lingers and not flow.job_over:  # whoever is gone may be started again
            if ranks:
                self._wait(min(settings.lingers, MAX_WAIT_S), self._nobody_came)
        elif self._ending():
            self._wait(MAX_WAIT_S, self._still_ends)  # what it does at its end is work, too
        elif settings.owns_job or ranks or self._core.flow.wanted or flow.job_over:
            self._end()  # else nobody has said yet who the ranks are

    def job_ended(self, code: int | None) -> None:
        """No more ranks will be started: give up on those that have not come."""
        self._core.flow.job_over = True
        self._core.flow.job_code = code
        for rank in self._core.sorted_mains():
            runs = rank.lost and (rank.lost.alive or rank.endpoint.watched)
            if rank.link is None and not runs:
                self._lifecycle.ended(rank)
        self.consider()

    def shut_down(self, reason: str) -> None:
        """SIGTERM and its like: every rank runs on, every client is told; once."""
        if self._core.flow.ended:
            return
        self._core.log(logging.INFO, "session", f"shutting down: {reason}")
        self._core.flow.ended = True
        self._core.flow.wanted = False
        for rank in self._core.sorted_ranks():
            self._lifecycle.leave(rank, release=False)
        self._leave.say_goodbye()

    def _all_gone(self) -> bool:
        return all(rank.phase is Phase.GONE for rank in self._core.mains.values())

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        """Do it so long after the last rank's end, unless one has come back, or is to."""

        def passed() -> None:
            self._timer = None
            if self._all_gone() and not self._core.flow.restarting:
                then()

        self._core.cancel(self._timer)
        self._timer = self._core.after(seconds, passed)

    def _ending(self) -> list[Rank]:
        """Return the ranks that have left their debuggers, and whose processes are not over."""
        settings, ranks = self._core.settings, self._core.sorted_mains()
        if settings.lingers:
            return []
        if settings.owns_job:
            return [rank for rank in ranks if rank.exit_code is None]
        processes = self._lifecycle.processes
        for rank in ranks:
            processes.look_at_end(rank)
        return sorted(processes.ending(), key=lambda rank: rank.id)

    def _still_ends(self) -> None:
        late = [rank.rank_id for rank in self._ending()]
        ranks = name_ranks(late, self._core.default_group())
        text = f"the program of {ranks} has ended, but not the process: the session waits for it"
        notice(self._core, text)

    def _nobody_came(self) -> None:
        """Are there to be more? Where a rank's place says nothing against it, it was the program
        that has ended, and not what it ran in."""
        expected = any(rank.endpoint.way_down for rank in self._core.mains.values())
        if self._core.recorded is not None:
            return  # its ranks are shown as they ended
        if expected or self._core.settings.lingers == inf:
            notice(self._core, WAITS)
        else:
            self._end()

    def _end(self) -> None:
        if self._core.flow.ended:
            return
        self._core.cancel(self._timer)
        self._output.flush(everything=True)
        self._deaths.flush()
        self._core.flow.ended = True
        self._progress.end()
        self._leave.say_goodbye()
        self._core.out.append(Finished())


# The job that a client has launched: that client may have it started again.
#
# DAP, `restart`: the session, its clients and their breakpoints stay; the ranks' processes are new
# ones, each with the thread id that its rank has had before.

NO_RESTART: Final = (
    "restart works only for a job that this client has launched; attach again to read the "
    "configuration anew, and start the job again where it was started"
)
RESTARTING: Final = "the job is already being restarted"
REPLAY_PLACES: Final = re.compile(r"(?:(?:(?:call|step)[: ])?\d{1,12}|last)(?:@\d{1,7})?")
NO_PLACE: Final = "restart to {!r}: must be a step, call N or last"
NO_REPLAY: Final = "restart to {!r} works only in a replay: `dap-mux replay`"


class ReplayPlace(Struct):
    """Where a replay is: the last call before that."""

    before: int = 0


class JobRestart(Struct, eq=False):
    """The engine's part that has the job started again; a replay, up to a place."""

    _core: SessionState
    _control: Control

    def restart(self, request: ClientRequest) -> None:
        """`restart`: answered at once; the old ranks' rows go, and the new ones' come."""
        to, replays = typed(request.arguments, RestartArguments).to, self._core.settings.replays
        if to and not (replays and REPLAY_PLACES.fullmatch(to)):
            raise UsageError(NO_PLACE.format(to) if replays else NO_REPLAY.format(to))
        owned = self._core.settings.owns_job and (request.client.launched or replays)
        if owned:
            self._restart(request, to)
        else:
            to_clients.refuse(self._core, request, NO_RESTART)

    def step_back(self, request: ClientRequest) -> None:
        """`stepBack`, `reverseContinue`: a replay is run anew to the call before."""
        if not self._core.settings.replays:
            self._control.step(request)
            return
        rank = self._control.row_of(request)
        if not (rank.stop and rank.phase.live):
            raise UsageError("the replay is running: pause it before you go back")
        then = partial(self._back, request)
        gather_results(self._core, [rank], lambda _: REPLAY_PLACE, ReplayPlace, then)

    def _back(self, request: ClientRequest, results: dict[DebuggeeId, Result[ReplayPlace]]) -> None:
        (((_, rank), (place, reply)),) = ((id[:2], result) for id, result in results.items())
        if place is None or place.before < 1:
            problem = "no call comes before this place" if place else reply.problem
            to_clients.refuse(self._core, request, problem)
        else:
            self._restart(request, f"call:{place.before}@{rank}")

    def _restart(self, request: ClientRequest, to: str) -> None:
        flow = self._core.flow
        if flow.restarting or flow.ended:
            to_clients.refuse(self._core, request, RESTARTING if flow.restarting else NO_RESTART)
            return
        flow.restarting = True
        to_clients.respond(self._core, request)
        for client in self._core.clients.values():
            client.focus.rank = None  # nobody is shown one dying rank after the other
        self._core.out.append(RestartJob(to))
