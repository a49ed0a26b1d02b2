"""Continue, pause and step: answered at once, carried out on the ranks of the scope.

K1 of FACTS lives here: `continue` goes only to a rank with an unresolved stop; while a pause is
under way its stop is awaited first. Nothing here ever waits for a rank that cannot stop yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from dap_mux.engine import downstream, upstream
from dap_mux.engine.announce import Announcer
from dap_mux.engine.core import Core
from dap_mux.engine.model import Body, Client, ClientRequest, Owed, Rank, Reply, StepRun
from dap_mux.engine.phases import Phase
from dap_mux.engine.scope import STEPS, class_of, focused, give_focus, targets
from dap_mux.engine.stops import Stops
from dap_mux.engine.view import View, main_thread
from dap_mux.errors import StaleHandle
from dap_mux.protocol.handle_fields import Id, Kind
from dap_mux.protocol.messages import plain
from dap_mux.protocol.types import ScopeArguments, ThreadArguments, typed
from dap_mux.rank_sets.debuggees import DebuggeeId

Heard: TypeAlias = Callable[[Rank, Reply], None]
NOT_FOR_RANKS = frozenset({"threadId", "singleThread"})


class Control:
    """The engine's part that makes ranks run and stop."""

    def __init__(self, core: Core, view: View, announcer: Announcer) -> None:
        self._core = core
        self._view = view
        self._announcer = announcer
        self.stops = Stops(core, announcer, self._pay)

    def _targets(self, request: ClientRequest) -> tuple[Rank, list[Rank], int]:
        """Return the row's rank, the ranks of the scope, and debugpy's thread id in the first."""
        client = request.client
        if request.command in STEPS:
            named = typed(request.arguments, ThreadArguments)
            row, single = named.threadId, named.singleThread
        else:
            asked = typed(request.arguments, ScopeArguments)
            single = asked.singleThread
            row = self._focused_row(client) if asked.threadId is None else asked.threadId
        members, upstream_id = self._view.resolve(client, row)
        chosen = targets(self._core, client, members, request.command, single=single)
        return members[0], chosen, upstream_id

    def _focused_row(self, client: Client) -> int:
        """Return the row that the client works on, the first where it has not looked at any."""
        live = (rank for rank in self._core.sorted_ranks() if rank.phase is Phase.LIVE)
        rank = focused(self._core, client) or next(live, None)
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
        all_run = not any(rank.stop for rank in others if rank.phase is Phase.LIVE)
        downstream.respond(self._core, request, {"allThreadsContinued": all_run})
        self._announcer.resumed([rank for rank in chosen if self.resume(rank)])

    def resume(self, rank: Rank) -> bool:
        """Let a rank run on; True if it was stopped and does so now."""
        if rank.stop:
            thread = rank.stop.thread
            self.stops.clear(rank)
            upstream.ask(
                self._core, rank, "continue", {"threadId": thread}, self._reporter(rank, "continue")
            )
            return True
        if rank.pausing or rank.run:
            rank.owed.append(Owed("continue", {}, None))
        return False

    # Stopping: `pause`

    def pause(self, request: ClientRequest) -> None:
        """`pause`. A rank blocked in C acknowledges, and stops when its call returns."""
        _, chosen, _ = self._targets(request)
        downstream.respond(self._core, request)
        self.pause_ranks(chosen)

    def pause_ranks(self, ranks: Iterable[Rank]) -> None:
        """Ask running ranks to stop; what they still owed is off.

        Also of one that has just stopped and is about to run on: there it stays.
        """
        for rank in ranks:
            if rank.phase is Phase.LIVE and not (rank.stop and rank.stop.settled):
                rank.owed.clear()
                if rank.stop is None and not rank.pausing:
                    rank.pausing = True
                    self.stops.moved(rank)
                    thread = {"threadId": main_thread(rank)}
                    then = partial(self._paused, rank)
                    upstream.ask(self._core, rank, "pause", thread, then)

    def _paused(self, rank: Rank, reply: Reply) -> None:
        """It is refused, or stands still sooner or later."""
        self._reporter(rank, "pause")(reply)
        if not reply.ok and not reply.missing and rank.pausing:
            rank.pausing = False
            rank.owed.clear()
            self.stops.moved(rank)

    # Stepping: `next`, `stepIn`, `stepOut`

    def step(self, request: ClientRequest) -> None:
        """A step of the row's rank, or of its whole class in lock-step."""
        row, chosen, thread = self._targets(request)
        arguments = plain(request.arguments)
        if "targetId" in arguments:
            arguments["targetId"] = self._step_in_target(row, arguments["targetId"])
            chosen = [row]  # the others' debuggers know the ids of their own targets only
        stopped = [rank for rank in chosen if rank.stop and rank.phase is Phase.LIVE]
        if row.stop is None or row not in stopped:
            name = self._view.name_of(row)
            downstream.refuse(self._core, request, f"{name} is running: pause it before you step")
            return
        rest = {key: value for key, value in arguments.items() if key not in NOT_FOR_RANKS}
        downstream.respond(self._core, request)
        give_focus(request.client, row.id)
        late = self._late_members(row, stopped, chosen)
        place = row.stop.frames
        run = self._step(stopped, late, request.command, rest, {row.id: thread})
        for rank in late:
            rank.owed.append(Owed(request.command, rest, place, run))
        self._announcer.stepping(stopped)

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
        return [rank for rank in late if rank not in stopped and (rank.run or rank.owed)]

    def _step(
        self,
        ranks: list[Rank],
        late: list[Rank],
        command: str,
        rest: Body,
        threads: dict[DebuggeeId, int],
        heard: Heard | None = None,
    ) -> StepRun:
        run = self.stops.begin_step(ranks, late)
        for rank in ranks:
            assert rank.stop is not None
            rank.last_run = run
            thread = threads.get(rank.id, rank.stop.thread)
            self.stops.clear(rank)
            self._send_step(rank, command, {**rest, "threadId": thread}, heard)
        return run

    def step_named(self, ranks: list[Rank], late: list[Rank], command: str, heard: Heard) -> None:
        """Let exactly these stopped ranks step as one; the late ones follow from where they stop.

        `heard` is told what each of `ranks` says to it.
        """
        run = self._step(ranks, late, command, {}, {}, heard)
        for rank in late:
            rank.owed.append(Owed(command, {}, None, run))
        self._announcer.stepping(ranks)

    def tell_resumed(self, ranks: list[Rank]) -> None:
        """The clients are told that these run on."""
        if ranks:
            self._announcer.resumed(ranks)

    def _send_step(
        self, rank: Rank, command: str, arguments: Body, heard: Heard | None = None
    ) -> None:
        then = partial(heard, rank) if heard else self._reporter(rank, command)
        upstream.ask(self._core, rank, command, arguments, then)

    def _pay(self, rank: Rank, owed: Owed) -> None:
        """A late rank arrived where its class was told to go on from: it follows."""
        if owed.command == "continue":
            self.resume(rank)
            return
        assert rank.stop is not None
        arguments = {**owed.arguments, "threadId": rank.stop.thread}
        self.stops.clear(rank)
        rank.run = owed.run
        if owed.run:
            owed.run.flying.add(rank.id)
        self._send_step(rank, owed.command, arguments)

    def _reporter(self, rank: Rank, command: str) -> upstream.Then:
        def report(reply: Reply) -> None:
            if not reply.ok and rank.phase is Phase.LIVE:
                text = f"{command}: {reply.problem}"
                self._core.log(logging.WARNING, "rank", text, rank)

        return report

    # focus

    def focus(self, rank: Rank) -> None:
        """Show every client a stopped rank; resumes nobody."""
        for client in self._core.controllers():
            before = focused(self._core, client)
            old = self._view.id_for_stop(client, before) if before and before.stop else None
            self._announcer.move(client, rank, old)


def held(rank: Rank) -> bool:
    """Whether it is stopped at an uncaught exception, or may be: it ends when it runs on."""
    return rank.stop is not None and rank.stop.unhandled
