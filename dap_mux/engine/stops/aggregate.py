"""Stops of many ranks become few events for clients."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from msgspec import Struct, field

from dap_mux.engine.barriers.barriers import Barriers
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.ranks.deaths import note_stop
from dap_mux.engine.state.rank import NO_THREADS, Deferred, Rank, Reply, StepRun, Stop
from dap_mux.engine.state.session import Broadcast, Listeners, SessionState
from dap_mux.engine.state.threads import MAIN_THREAD
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.engine.stops.user_threads import LEARN, UserThreads, learn_stack
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.rank_messages import (
    Stopped,
)
from dap_mux.pure.rank_sets.world import DebuggeeId

STACK_TIMEOUT = 1.0  # s; a stop whose stack is not known by then is announced without, for now
OWN_STOPS = frozenset({"step", "pause"})  # reasons that end what we asked for, and nothing else
MANY_AT_ONCE = 64  # stops in one window: more are on their way
MOST_WINDOWS = 20


class HeldOutput(Protocol):
    """What ranks have printed and clients have not been sent yet."""

    def flush(self, *, said_by: Collection[DebuggeeId]) -> None:
        """Send it, at least all of these ranks."""


# A stop counts once its stack is known, for classes are compared by stacks. It is then announced
# with all others that settle within the window; at once when nobody is left who may stop, or when
# the step it ends is complete. Stops that follow while a client has not taken in the last ones
# wait, too: some editors lose the first one's stack over the second.
#
# A rank that is late to a step runs the command that its class was given meanwhile
# (`Rank.deferred`), so that the class stays together; one that stops for another reason is shown
# where it is.
class Stops(Struct, eq=False):
    """The engine's part that owns `Rank.stop`, `run` and `deferred`."""

    _core: SessionState
    _client_events: ClientEvents
    _output: HeldOutput
    barriers: Barriers
    user_threads: UserThreads
    follows: Listeners[[Rank, Deferred]] = field(default_factory=Listeners)  # a late rank
    _new: dict[DebuggeeId, Stop] = {}
    _steps: list[StepRun] = []  # those that may still be under way
    _running: list[Rank] = []  # those that ran when somebody last looked at all
    _timer: int | None = None

    def __post_init__(self) -> None:
        self.barriers.met.add(self.show)
        self.barriers.freed.add(self.run_on)
        self.barriers.named.add(self._named)
        self.barriers.paused.add(lambda rank: self.show([rank], waits=True))

    # From ranks

    def stopped(self, rank: Rank, said: Stopped, details: Body) -> None:
        """A rank's `stopped` event. It speaks of one rank, whatever `allThreadsStopped` says."""
        core = self._core
        if said.reason == "goto" and rank.stop and rank.stop.announced:
            self._jumps(rank)
        core.handles.expire_stop(rank.id)
        stop = Stop(said.threadId or 1, said.reason or "pause", details)
        stop.actor, stop.paused = said.actor, rank.pausing
        stop.unhandled = stop.reason == "exception"  # until it is known to be caught
        learn_stack(self.user_threads, rank, stop, said)  # told here by ranks that are patched to
        if said.threadName == MAIN_THREAD:  # another's name alone would not say which is the main
            rank.threads.setdefault(stop.thread, MAIN_THREAD)
        if not self.barriers.ends_wait(rank, stop):  # first: a deferred command may continue it
            self.barriers.edits.stopped(rank, said.hits)
        core.set_stop(rank, stop)
        core.set_pausing(rank, False)
        self.user_threads.stopped(rank, stop, said.userThreads or ())
        rank.stepping = NO_THREADS
        self._new.pop(rank.id, None)
        self._learn(rank, stop)

    def _jumps(self, rank: Rank) -> None:
        """A stop follows a stop: between the two the rank has run on, and the focus stays."""
        self.clear(rank)
        self._client_events.stepping([rank])

    def _learn(self, rank: Rank, stop: Stop) -> None:
        """Fetch what must be known before the stop can be told: stack, threads, exception."""
        asked: dict[str, Body] = {}
        if stop.frames is None:
            asked["stackTrace"] = {"threadId": stop.thread}
        if stop.thread not in rank.threads or self._core.rows_of(rank) == "all":
            asked["threads"] = {}  # else it is one that has stood there before, and has its name
        if stop.reason == "exception":
            asked["exceptionInfo"] = {"threadId": stop.thread}
        if not asked:
            self._settled(rank, stop)
            return
        join = Join(self._core, asked, lambda missing: self._learned(rank, stop), STACK_TIMEOUT)
        for command, arguments in asked.items():
            self._ask(rank, stop, command, arguments, join)

    def _ask(self, rank: Rank, stop: Stop, command: str, arguments: Body, join: Join[str]) -> None:
        def answered(said: Any, _: Reply) -> None:
            if rank.stop is stop:
                if said is not None:
                    learn(self.user_threads, rank, stop, said)
                if stop.settled:
                    self._core.touch(rank)  # late, but still worth knowing
            join.arrive(command)

        kind, learn = LEARN[command]
        late = self._core.settings.silence_timeout
        to_ranks.ask_for(self._core, rank, command, arguments, kind, answered, late)

    def _learned(self, rank: Rank, stop: Stop) -> None:
        """All is known, or has been waited for long enough."""
        if rank.stop is stop:
            self._settled(rank, stop)

    def _settled(self, rank: Rank, stop: Stop) -> None:
        if rank.at_barrier:
            self.barriers.settled(rank, rank.at_barrier)
            return
        run, rank.run = rank.run, None
        if run:
            run.pending.discard(rank.id)
        if self._stays(rank, stop):
            stop.settled = True
            self._new[rank.id] = stop
        self._core.touch(rank)

    def _stays(self, rank: Rank, stop: Stop) -> bool:
        """Let a rank that is late to its class's step keep up; False when it runs on."""
        if not rank.deferred:
            return True
        deferred = rank.deferred.pop(0)
        keeps_up = stop.reason in OWN_STOPS and deferred.place in (None, stop.frames)
        if not keeps_up:
            rank.deferred.clear()
            return True
        self.follows.tell(rank, deferred)
        return False

    # Barriers

    def show(self, ranks: list[Rank], *, waits: bool = False) -> None:
        """The stops of these ranks at a barrier count from now on; `waits`: they stay in it."""
        for rank in ranks:
            stop = rank.stop
            if stop is None:
                continue
            if not waits:
                rank.at_barrier = None
                self.barriers.edits.stopped(rank, stop.details.get("hitBreakpointIds") or [])
            stop.settled = True
            if not stop.announced:
                self._new[rank.id] = stop
            self._core.touch(rank)

    def run_on(self, ranks: list[Rank]) -> None:
        """Let these ranks go that wait at a barrier."""
        told = [rank for rank in ranks if rank.stop and rank.stop.announced]
        stops = {rank: rank.stop for rank in ranks}

        def answered(rank: Rank, reply: Reply) -> None:
            stop = stops[rank]
            if stop and rank.phase.live and not reply.ok and not reply.no_reply_reason:
                self.stands(rank, stop)

        messages: dict[object, Broadcast] = {}
        requests = to_ranks.Round(self._core, "continue", answered)
        for rank, stop in stops.items():
            if stop is not None:
                thread = "*" if rank.connection.direct else stop.thread
                if thread not in messages:
                    messages[thread] = Broadcast("continue", {"threadId": thread})
                self.clear(rank)
                requests.ask(rank, messages[thread])
        self._client_events.resumed(told)

    def _named(self, ranks: list[Rank]) -> None:
        for rank in ranks:
            self._core.touch(rank)
        self._client_events.renamed(ranks)

    def continued(self, rank: Rank) -> None:
        """A rank's `continued` event: news only where it runs on without our asking."""
        if rank.stop is None:
            return
        told = rank.stop.announced
        self.clear(rank)
        if told:
            self._client_events.resumed([rank])

    # From control and lifecycle

    def clear(self, rank: Rank, *, gone: bool = False) -> None:
        """The rank runs on, or is `gone`: its frames and variables are no more."""
        if rank.stop and not gone:
            rank.last_thread = rank.stop.thread
        note_stop(rank, rank.stop)
        self._core.set_stop(rank, None)
        self.barriers.leave(rank, gone=gone)
        self._new.pop(rank.id, None)
        handles = self._core.handles
        (handles.expire_rank if gone else handles.expire_stop)(rank.id)

    def give_up_step(self, rank: Rank) -> None:
        """The rank takes part in no step any more."""
        run, rank.run = rank.run, None
        if run:
            run.pending.discard(rank.id)
        rank.deferred.clear()
        rank.stepping = NO_THREADS

    def stands(self, rank: Rank, stop: Stop) -> None:
        """The rank has refused to move: this is still its stop, and the clients see it again."""
        self.give_up_step(rank)
        stop.settled, stop.announced = True, False
        self._core.set_stop(rank, stop)
        self._core.set_pausing(rank, False)
        self._new[rank.id] = stop

    def forget(self, rank: Rank) -> None:
        """The rank's connection is gone: it takes part in nothing that is under way."""
        self.give_up_step(rank)
        self._core.set_pausing(rank, False)
        rank.threads, rank.home = {}, None
        self.clear(rank, gone=True)

    def begin_step(self, ranks: list[Rank], late: list[Rank]) -> StepRun:
        """These ranks are told to step, in lock-step; those who are late will follow."""
        run = StepRun({r.id for r in ranks + late}, {rank.id for rank in ranks})
        for rank in ranks:
            rank.run = run
        self._steps.append(run)
        self._core.after(self._core.settings.step_grace, lambda: self._overdue(run))
        return run

    def _overdue(self, run: StepRun) -> None:
        run.overdue = True
        if self._new:
            self.consider()
        elif run.pending:
            self._client_events.overdue(run)

    # Announcing

    def consider(self) -> None:
        """Announce what has settled, or make sure that somebody will."""
        if not self._new or self._core.flow.restarting:
            return
        if self._steps_complete() or (self._nobody_else() and not self._client_events.applying()):
            self._announce()
        elif self._timer is None:
            settings = self._core.settings
            late = any(r.stop and r.stop.announced for r in self._core.ranks.values())
            window = settings.late_settle if late else settings.settle
            self._timer = self._core.after(window, lambda: self._window_over(0))

    def _window_over(self, seen: int, times: int = 1) -> None:
        """Announce, unless stops are still coming in by the hundred; `seen`: those before."""
        self._timer = None
        now = len(self._new)
        if now - seen > MANY_AT_ONCE and times < MOST_WINDOWS:
            window = self._core.settings.settle
            self._timer = self._core.after(window, lambda: self._window_over(now, times + 1))
        elif not self._step_under_way():
            self._announce()

    def _nobody_else(self) -> bool:
        """Not a look at each rank: of those that ran, the last that still does is enough."""
        while self._running and not self._runs(self._running[-1]):
            self._running.pop()
        if not self._running:
            self._running = [rank for rank in self._core.ranks.values() if self._runs(rank)]
        return not self._running

    def _runs(self, rank: Rank) -> bool:
        told = rank.id in self._new or (rank.stop is not None and rank.stop.announced)
        may_stop = rank.phase.live or (rank.phase.handshake and rank.phase.linked)
        return may_stop and not told and rank.at_barrier is None

    def _steps_complete(self) -> bool:
        """Every new stop ends a step that is complete, or overdue."""
        return not self._step_under_way() and all(
            stop.reason == "step" for stop in self._new.values()
        )

    def _step_under_way(self) -> bool:
        """Not a look at each rank: each of a thousand that stop at once asks this."""
        self._steps = [run for run in self._steps if not run.overdue]
        return any(run.pending for run in self._steps)

    def _announce(self) -> None:
        self._core.cancel(self._timer)
        self._timer = None
        new = [rank for rank in self._core.sorted_ranks() if rank.id in self._new]
        self._new.clear()
        for rank in new:
            if rank.stop:
                rank.stop.announced = True
        if new:
            self._output.flush(said_by={rank.id for rank in new})
            self._client_events.stops(new)
