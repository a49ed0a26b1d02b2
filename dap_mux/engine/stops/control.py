"""Continue, pause and step: answered at once, carried out on the ranks of the scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.messages.requests import STEPS_BACK
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.rank import Deferred, Rank, Reply, StepRun, Stop
from dap_mux.engine.state.selection import BACKWARDS, class_of, focused, give_focus, targets
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import View, main_thread
from dap_mux.engine.stops.aggregate import Stops
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.pure.errors import StaleHandle, UsageError
from dap_mux.pure.protocol.arguments import ContinueArguments
from dap_mux.pure.protocol.exchange import Id, Kind
from dap_mux.pure.protocol.messages import Body, plain
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets.world import DebuggeeId, label

NOT_FOR_RANKS = frozenset({"threadId", "singleThread"})


# debugpy never answers a `continue` to a running rank, so `continue` goes only to a rank with an
# unresolved stop; while a pause is under way its stop is awaited first. Nothing here ever waits for
# a rank that cannot stop yet.
class Control(Struct, eq=False):
    """The engine's part that makes ranks run and stop."""

    _core: SessionState
    _view: View
    client_events: ClientEvents
    stops: Stops
    _refusals: dict[str, list[DebuggeeId]] = {}

    def __post_init__(self) -> None:
        self.stops.follows.add(self._run_deferred)

    def _targets(self, request: ClientRequest) -> tuple[Rank, list[Rank], int]:
        """Return the row's rank, the ranks of the scope, and debugpy's thread id in the first."""
        client, asked = request.client, typed(request.arguments, ContinueArguments)
        row = self._focused_row(client) if asked.threadId is None else asked.threadId
        members, upstream_id = self._view.resolve(client, row)
        chosen = targets(self._core, client, members, request.command, single=asked.singleThread)
        return members[0], chosen, upstream_id

    def row_of(self, request: ClientRequest) -> Rank:
        """Return the rank of the row that a step is of."""
        return self._targets(request)[0]

    def _focused_row(self, client: Client) -> int:
        """Return the row that the client works on, the first where it has not looked at any."""
        rank = focused(self._core, client) or next(iter(self._core.live_ranks()), None)
        if rank is None:
            raise StaleHandle("no rank is attached")
        return self._view.id_for_stop(client, rank)

    # Running on: `continue`

    def continue_(self, request: ClientRequest) -> None:
        """`continue`. A rank held at an uncaught exception runs on only as the focus."""
        row, chosen, _ = self._targets(request)
        if len(chosen) > 1:
            kept = focused(self._core, request.client) or row
            others_stand = any(rank.stop and not held(rank) for rank in chosen)
            ends = (kept,) if others_stand else (kept, row)
            chosen = [rank for rank in chosen if rank in ends or not held(rank)]
        left = self._core.ranks.keys() - {rank.id for rank in chosen}
        others = (self._core.ranks[id] for id in left)
        all_run = not any(rank.stop for rank in others if rank.phase.live)
        to_clients.respond(self._core, request, {"allThreadsContinued": all_run})
        self.client_events.resumed(self.resume(chosen))
        if row not in chosen and row.stop:
            self.client_events.regrouped(request.client)

    def resume(self, ranks: list[Rank]) -> list[Rank]:
        """Let ranks run on; return those that were stopped and do so now.

        Those that wait at a barrier do so, too, unless others stop elsewhere, perhaps on their way
        there; one that is chosen alone, or was paused there, does so anyway.
        """
        alone = len(ranks) == 1
        elsewhere = any(rank.stop and not rank.at_barrier for rank in ranks)
        resumed = [
            rank
            for rank in ranks
            if alone or not _waits(rank, elsewhere=elsewhere)
            if self._resume(rank)
        ]
        if not alone:
            self.stops.barriers.begin_anew()
        return resumed

    def _resume(self, rank: Rank) -> bool:
        if rank.at_barrier and not rank.stopped:
            self.stops.barriers.let_go(rank)
            return False
        if rank.stop:
            self._tell(rank, "continue", {"threadId": rank.stop.thread})
            return True
        if rank.run and not rank.pausing and self._holds_threads():
            self.stops.give_up_step(rank)
            self._tell(rank, "continue", {"threadId": main_thread(rank)})
            return True
        if rank.pausing or rank.run:
            rank.deferred.append(Deferred("continue", {}, None))
        return False

    def _holds_threads(self) -> bool:
        """Whether a rank's other threads stand while one steps.

        The step may then wait for one of them for ever. And a rank with a thread that stands may
        be told to continue, which a running one must never be.
        """
        return self._core.flow.arguments.get("steppingResumesAllThreads") is False

    # Stopping: `pause`

    def pause(self, request: ClientRequest) -> None:
        """`pause`. A rank blocked in C acknowledges, and stops when its call returns."""
        _, chosen, _ = self._targets(request)
        to_clients.respond(self._core, request)
        self.pause_ranks(chosen)

    def pause_ranks(self, ranks: Iterable[Rank]) -> None:
        """Ask running ranks to stop; what was deferred for them is off.

        Also of one that has just stopped and is about to run on: there it stays.
        """
        for rank in ranks:
            if rank.phase.live and not (rank.stop and rank.stop.settled):
                rank.deferred.clear()
                if self.stops.barriers.pause(rank):
                    continue
                if rank.stop is None and not rank.pausing:
                    self._core.set_pausing(rank, True)
                    thread = {"threadId": main_thread(rank)}
                    then = partial(self._paused, rank)
                    to_ranks.ask(self._core, rank, "pause", thread, then)

    def _paused(self, rank: Rank, reply: Reply) -> None:
        """It is refused, or stands still sooner or later."""
        if not reply.ok and rank.phase.live:
            self._core.warn("rank", f"pause: {reply.problem}", rank)
        if not reply.ok and not reply.no_reply_reason and rank.pausing:
            self._say_refusal(rank, "pause", reply)
            self._core.set_pausing(rank, False)
            rank.deferred.clear()

    # Stepping: `next`, `stepIn`, `stepOut`

    def step(self, request: ClientRequest) -> None:
        """A step of the row's rank, or of its whole class in lock-step."""
        focus, chosen, thread = self._targets(request)
        row, thread = _lead(focus, chosen, thread)
        if request.command in BACKWARDS and not _goes_back(row):
            raise UsageError(f"{request.command!r} works in a recording or a replay only")
        arguments = plain(request.arguments)
        if "targetId" in arguments:
            arguments["targetId"] = self._step_in_target(row, arguments["targetId"])
            chosen = [row]  # the others' debuggers know the ids of their own targets only
        stopped = [rank for rank in chosen if rank.stop and rank.phase.live]
        rest = {key: value for key, value in arguments.items() if key not in NOT_FOR_RANKS}
        if self._stands_beside_a_step(row, thread):
            to_clients.respond(self._core, request)
            self.client_events.thread_steps(row, thread)
            self._tell(row, request.command, {**rest, "threadId": thread}, thread=thread)
            return
        if self._steps(row, thread) and request.client.dialect.repeats_steps:
            to_clients.respond(self._core, request)
            self._stays(request.client, focus, row)
            return
        if row.stop is None or row not in stopped:
            name = self._view.name_of(row)
            to_clients.refuse(self._core, request, f"{name} is running: pause it before you step")
            return
        to_clients.respond(self._core, request)
        late = self._late_members(row, stopped, chosen)
        place = row.stop.frames
        run = self._step(stopped, late, request.command, rest, {row.id: thread})
        for rank in late:
            rank.deferred.append(Deferred(request.command, rest, place, run))
        if row is focus:
            give_focus(request.client, row.id)
        self.client_events.stepping(stopped)
        self._stays(request.client, focus, row)

    def _stays(self, client: Client, focus: Rank, row: Rank) -> None:
        """Others than the focus step: its client took it for running at once."""
        if row is not focus:
            self.client_events.regrouped(client)

    def _steps(self, rank: Rank, thread: int) -> bool:
        """Whether this row's last step is still under way: a held key repeats it."""
        return bool(rank.stepping) and (
            thread in rank.stepping or not self._core.shows_threads(rank)
        )

    def _stands_beside_a_step(self, rank: Rank, thread: int) -> bool:
        """Whether this thread is held while another one of its rank steps: it may step too."""
        steps = rank.run is not None and rank.stop is None and not rank.pausing
        held_there = thread in rank.threads and thread not in rank.stepping
        return steps and held_there and self._core.shows_threads(rank) and self._holds_threads()

    def _step_in_target(self, row: Rank, target: Id) -> Id:
        """Return the rank's own id of a step-in target; raise `StaleHandle` if it has none such."""
        owner, upstream_id = self._core.handles.resolve(Kind.STEP_IN, target)
        if owner != row.id:
            raise StaleHandle(f"target {target} belongs to another thread")
        return upstream_id

    def _late_members(self, row: Rank, stopped: list[Rank], chosen: list[Rank]) -> list[Rank]:
        """Return who is still under way from the last step of this class: they will follow."""
        run = row.last_run
        if run is None or (len(chosen) == 1 and len(run.members) == 1):
            return []
        if chosen == [row] and class_of(self._core, row) != [row]:
            return []  # this rank alone was asked for
        late = (self._core.ranks[id] for id in sorted(run.members) if id in self._core.ranks)
        return [rank for rank in late if rank not in stopped and (rank.run or rank.deferred)]

    def _step(
        self,
        ranks: list[Rank],
        late: list[Rank],
        command: str,
        rest: Body,
        threads: dict[DebuggeeId, int],
        on_reply: to_ranks.OnRankReply | None = None,
    ) -> StepRun:
        run = self.stops.begin_step(ranks, late)
        for rank in ranks:
            assert rank.stop is not None
            rank.last_run = run
            thread = threads.get(rank.id, rank.stop.thread)
            self._tell(rank, command, {**rest, "threadId": thread}, on_reply, thread=thread)
        return run

    def step_named(
        self, ranks: list[Rank], late: list[Rank], command: str, on_reply: to_ranks.OnRankReply
    ) -> None:
        """Let exactly these stopped ranks step as one; the late ones follow from where they stop.

        `on_reply` is told what each of `ranks` says to it.
        """
        run = self._step(ranks, late, command, {}, {}, on_reply)
        for rank in late:
            rank.deferred.append(Deferred(command, {}, None, run))
        self.client_events.stepping(ranks)

    def _tell(
        self,
        rank: Rank,
        command: str,
        arguments: Body,
        on_reply: to_ranks.OnRankReply | None = None,
        thread: int | None = None,
    ) -> None:
        """Tell a rank to run on, or one thread of it to step; it stands on if it refuses."""
        stop = rank.stop
        if stop:
            self.stops.clear(rank)
        if thread is not None:
            rank.stepping |= {thread}
            rank.last_thread = thread

        def answered(reply: Reply) -> None:
            if rank.phase.live and not reply.ok:
                self._core.warn("rank", f"{command}: {reply.problem}", rank)
                if not reply.no_reply_reason and rank.stop is None:
                    self._stands(rank, stop, thread)
                    if on_reply is None:
                        self._say_refusal(rank, command, reply)
            if on_reply:
                on_reply(rank, reply)

        to_ranks.ask(self._core, rank, command, arguments, answered)

    def _stands(self, rank: Rank, stop: Stop | None, thread: int | None) -> None:
        """The rank stands where it stood; or the one thread does, and its other one steps on."""
        if stop:
            self.stops.stands(rank, stop)
        elif thread is not None:
            rank.stepping -= {thread}

    def _say_refusal(self, rank: Rank, command: str, reply: Reply) -> None:
        """Say why a rank does not do it; many that refuse for the same reason are one line."""
        if not self._refusals:
            self._core.after(self._core.settings.settle, self._say_refusals)
        self._refusals.setdefault(f"refused {command!r}: {reply.problem}", []).append(rank.id)

    def _say_refusals(self) -> None:
        refusals, self._refusals = self._refusals, {}
        for what, ranks in refusals.items():
            who = label(sorted(ranks), self._core.default_group())
            text = f"rank{'s' if len(ranks) > 1 else ''} {who} {what}"
            to_clients.say(self._core, text, "stderr")

    def _run_deferred(self, rank: Rank, deferred: Deferred) -> None:
        """A late rank arrived where its class was told to go on from: it follows."""
        if deferred.command == "continue":
            self._resume(rank)
            return
        assert rank.stop is not None
        thread = rank.stop.thread
        rank.run = deferred.run
        if deferred.run:
            deferred.run.pending.add(rank.id)
        self._tell(
            rank, deferred.command, {**deferred.arguments, "threadId": thread}, thread=thread
        )

    # focus

    def focus(self, rank: Rank) -> None:
        """Show every client a stopped rank; resumes nobody."""
        for client in self._core.controllers():
            before = focused(self._core, client)
            old = self._view.id_for_stop(client, before) if before and before.stop else None
            self.client_events.move(client, rank, old)


def _lead(focus: Rank, chosen: list[Rank], thread: int) -> tuple[Rank, int]:
    """Return the rank whose place counts for a step, and its thread: usually the focus.

    It is another where the scope is a rank set, and the focus is not in it.
    """
    if focus in chosen:
        return focus, thread
    lead = next((rank for rank in chosen if rank.stop), chosen[0])
    return lead, lead.stop.thread if lead.stop else main_thread(lead)


def _waits(rank: Rank, *, elsewhere: bool) -> bool:
    """Whether it waits at a barrier on, though all are told to continue."""
    at = rank.at_barrier
    if at is None or rank.stopped:
        return False
    if at.round and at.round.stops:
        return True
    return not rank.pausing and (elsewhere or at.round is None)


def _goes_back(rank: Rank) -> bool:
    return bool(rank.connection.offers and rank.connection.offers.get(STEPS_BACK))


def held(rank: Rank) -> bool:
    """Whether it is stopped at an uncaught exception, or may be: it ends when it runs on."""
    return rank.stop is not None and rank.stop.unhandled


# Callbacks for a rank's next complete stop, for instance after a step.

OnStop: TypeAlias = Callable[[Rank], None]


class _Waiter(Struct, frozen=True):
    then: OnStop
    old: Stop | None
    cause: ClientRequest | None


class StopWaiters(Struct, eq=False):
    """Calls back whoever waits for a rank's next stop or its end."""

    _core: SessionState
    _waiting: dict[DebuggeeId, list[_Waiter]] = {}

    def wait(self, rank: Rank, then: OnStop, old: Stop | None = None) -> None:
        """Call `then` once, when the rank has settled in another stop than `old`, or is gone."""
        self._waiting.setdefault(rank.id, []).append(_Waiter(then, old, self._core.cause))

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Call back those whose rank has arrived."""
        for rank in ranks if self._waiting else ():
            waiting = self._waiting.pop(rank.id, None)
            if waiting is not None:
                self._look(rank, waiting)

    def _look(self, rank: Rank, waiting: list[_Waiter]) -> None:
        here = [one for one in waiting if _arrived(rank, one.old)]
        stay = [one for one in waiting if one not in here]
        if stay:
            self._waiting[rank.id] = stay
        for one in here:
            self._core.later(partial(one.then, rank), one.cause)


def _arrived(rank: Rank, old: Stop | None) -> bool:
    if not rank.phase.live:
        return True
    return rank.stopped and rank.stop is not old
