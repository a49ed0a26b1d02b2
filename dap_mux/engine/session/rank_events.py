"""Handlers of the events that ranks send; `dispatch` has the table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Raw, Struct, field

from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.messages.requests import Capabilities, offers_of
from dap_mux.engine.outputs import ToRank
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.ranks.patching import PROGRAM_OVER, confirmation
from dap_mux.engine.session.groups import ACTOR, MAX_QUESTIONS, let_know
from dap_mux.engine.session.rank_output import RankOutput
from dap_mux.engine.state.client import thread
from dap_mux.engine.state.handles import Recent
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import Listeners, SessionState
from dap_mux.engine.state.threads import View, main_thread
from dap_mux.engine.stops.aggregate import Stops
from dap_mux.engine.stops.user_threads import learn_threads
from dap_mux.pure.protocol.exchange import Id, Kind
from dap_mux.pure.protocol.handle_fields import EVENTS
from dap_mux.pure.protocol.messages import Body, Message, Response, encode, plain
from dap_mux.pure.protocol.rank_messages import (
    READY_MARK,
    ActorTold,
    Held,
    Marked,
    NotFinite,
    Served,
    StepTold,
    Stopped,
    Threads,
    announces_child,
    event_body,
    read,
    read_data,
    stopped_body,
)

MAX_LOADED: Final = 100_000  # modules and sources that are told once
EARLY: Final = (Phase.ATTACHING, Phase.CONFIGURING)
MAX_RUNNING: Final = 65_536  # threads of one rank that are kept in mind
USER_THREADS: Final = "dap-mux: threads in user code"  # as in `injected.attach.reports`


class RankEvents(Struct, eq=False):
    """The engine's part that hears the ranks."""

    _core: SessionState
    _view: View
    _lifecycle: Lifecycle
    _stops: Stops
    _breakpoints: Breakpoints
    _capabilities: Capabilities
    _output: RankOutput
    actor_told: Listeners[[Rank, ActorTold]] = field(default_factory=Listeners)
    not_finite: Listeners[[Rank, NotFinite]] = field(default_factory=Listeners)
    step_told: Listeners[[Rank, StepTold]] = field(default_factory=Listeners)
    # By hash, because names may be long.
    _loaded: Recent[int, None] = field(default_factory=lambda: Recent(MAX_LOADED))

    # The session's state

    def initialized(self, rank: Rank, body: Body) -> None:
        """The rank takes breakpoints."""
        self._lifecycle.handshake.initialized(rank)

    def stopped(self, rank: Rank, said: Stopped, details: Body) -> None:
        """The rank has stopped.

        One that is being left goes on; taken for stopped, it would be told to continue when it is
        attached again; debugpy never answers a `continue` to a rank that runs.
        """
        if rank.phase.leaving:
            return
        if rank.phase in EARLY:
            rank.connection.early_stop = (said, details)
            return
        self._lifecycle.handshake.runs(rank)
        self._stops.stopped(rank, said, details)

    def held(self, rank: Rank, said: Held) -> None:
        """`dapMuxHeld`: the rank waits in the condition of a differ breakpoint.

        One that is being left is freed by that.
        """
        if not rank.phase.leaving:
            self._stops.barriers.held(rank, said)

    def continued(self, rank: Rank, body: Body) -> None:
        """The rank runs on."""
        rank.connection.early_stop = None
        self._stops.continued(rank)

    def terminated(self, rank: Rank, body: Body) -> None:
        """The rank's process or its debugger has ended; while we leave, debugpy says it too."""
        if not rank.phase.leaving:
            self._lifecycle.debugger_ended(rank)

    def exited(self, rank: Rank, body: Body) -> None:
        """The rank's process tells its exit code (never seen on attach)."""
        code = body.get("exitCode")
        if isinstance(code, int) and rank.exit_code is None:
            rank.exit_code = code

    def capabilities(self, rank: Rank, body: Body) -> None:
        """The rank offers something else than at first."""
        rank.connection.offers = offers_of(
            {**(rank.connection.offers or {}), **(body.get("capabilities") or {})}
        )
        self._capabilities.offered(rank.connection.offers)

    def sockets(self, rank: Rank, body: Body) -> None:
        """`debugpySockets`: the adapter has met its debuggee once it lists an internal one."""
        sockets = body.get("sockets") or []
        if any(isinstance(item, dict) and item.get("internal") for item in sockets):
            self._lifecycle.handshake.adapter_is_ready(rank)
        if self._core.single:  # each of many says it, and no client needs to know
            self.pass_on(rank, "debugpySockets", body)

    def served(self, rank: Rank, body: Body) -> None:
        """`dapMuxServed`: the rank has no adapter."""
        self._lifecycle.handshake.served(rank, read_data(body, Served).debugpy)

    def marked(self, rank: Rank, body: Body) -> None:
        """`dapMuxMark`: the rank sends more output once it knows that this much has come."""
        let_know(self._core, rank, confirmation(read_data(body, Marked).bytes))

    def thread(self, rank: Rank, body: Body) -> None:
        """A Python thread of the rank came or went; rows of their own only where all are shown."""
        id, reason = body.get("threadId"), body.get("reason")
        if not isinstance(id, int):
            return
        _note_thread(rank, id, runs=reason != "exited")
        rows = self._core.rows_of(rank)
        if rows == "main" or not rank.phase.live:
            return
        if rows == "user" and (reason != "exited" or not _has_own_row(rank, id)):
            return
        if reason == "exited":
            self._tell_thread(rank, "exited", id)
            rank.threads.pop(id, None)
        else:
            self._ask_name(rank, id)

    def live(self, rank: Rank) -> None:
        """A rank without an adapter tells of threads and of a stop before it is attached."""
        if self._core.rows_of(rank) == "all":
            for id in sorted(rank.connection.threads):
                self._ask_name(rank, id)
        early, rank.connection.early_stop = rank.connection.early_stop, None
        if early is not None:
            self._stops.stopped(rank, *early)

    def _ask_name(self, rank: Rank, id: int) -> None:
        if len(rank.connection.pending) < MAX_QUESTIONS:
            to_ranks.ask_for(
                self._core,
                rank,
                "threads",
                {},
                Threads,
                lambda said, _: self._named(rank, id, said),
                to_ranks.NO_DEADLINE,  # a rank in a long call of C names it afterwards
            )

    def _named(self, rank: Rank, id: int, said: Threads | None) -> None:
        if said and rank.phase.live:
            learn_threads(rank, said)
            if id in rank.threads:
                self._tell_thread(rank, "started", id)

    def _tell_thread(self, rank: Rank, reason: str, id: int) -> None:
        main = id == main_thread(rank)
        if main and (reason == "exited" or not self._core.single):
            return  # the rank's own row: told when the rank comes and goes
        row = self._view.id_of(rank.id, None if main else id)
        for client in self._core.controllers():
            to_clients.send_event(self._core, client, *thread(reason, row))
            client.sync.replies += reason == "started"  # it asks `threads`, which applies no stop

    # Passed on

    def output(self, rank: Rank, body: Body) -> None:
        """Pass on what a rank printed, line by line and folded; telemetry is dropped."""
        if not isinstance(body.get("source"), dict):
            body.pop("source", None)
        rest = self._translated(rank, "output", body)
        text, category = rest.pop("output", ""), rest.pop("category", None) or ""
        if category == "telemetry" and text == PROGRAM_OVER:
            rank.connection.program_over = True
        elif category == "telemetry" and text == USER_THREADS:
            said = read_data(rest.get("data"), Threads)
            self._stops.user_threads.late(rank, said.threads or ())
        elif category == "telemetry" and text == ACTOR:
            self.actor_told.tell(rank, read_data(rest.get("data"), ActorTold))
        elif category == "telemetry":
            if text == "debugpy":
                data = rest.get("data")
                rank.debugpy = str(data.get("packageVersion", "")) if isinstance(data, dict) else ""
            self.pass_on(rank, "output", {"category": category, "output": text, **rest})
        elif not (text.startswith("dap-mux: ") and READY_MARK in text):
            self._output.add(rank, category, text, rest)

    def breakpoint(self, rank: Rank, body: Body) -> None:
        """A breakpoint of ours changed in this rank."""
        self._breakpoints.changed(rank, body.get("breakpoint") or {})

    def once(self, rank: Rank, event: str, loaded: Body, body: Body) -> None:
        """Each distinct module or source once, whichever rank loads it first."""
        if body.get("reason") == "new":
            seen = hash((event, str(loaded.get("path") or loaded.get("name"))))
            if seen in self._loaded:
                return
            self._loaded[seen] = None
        self.translated(event, rank, body)

    def process(self, rank: Rank, body: Body) -> None:
        """Once, for the job: the first rank's, under the job's name where that is known."""
        flow = self._core.flow
        if flow.process is None:
            flow.process = _job(body, self._core)
            to_clients.broadcast(self._core, "process", flow.process)

    def invalidated(self, rank: Rank, body: Body) -> None:
        """Variables only: VS Code replays old stops for threads and stacks."""
        areas = [area for area in body.get("areas") or ["variables"] if area == "variables"]
        if areas and rank.stop:
            to_clients.broadcast(self._core, "invalidated", {"areas": areas})

    def translated(self, event: str, rank: Rank, body: Body) -> None:
        """An event that is passed on with our ids, and needs nothing else."""
        to_clients.broadcast(self._core, event, self._translated(rank, event, body))

    def _translated(self, rank: Rank, event: str, body: Body) -> Body:
        def translate(kind: Kind, id: Id) -> Id:
            if kind is Kind.THREAD and isinstance(id, int):
                return self._view.id_of(rank.id, None if id == main_thread(rank) else id)
            return self._core.handles.mint(rank.id, kind, id)

        EVENTS[event].walk(body, translate)
        return body

    # For nobody, or for one rank only

    def child(self, rank: Rank, body: Body) -> None:
        """A child process waits for a debugger, wanted or not."""
        self._lifecycle.announced(rank, body)

    def pass_on(self, rank: Rank, event: str, body: Body) -> None:
        """One rank: as it is, also while clients configure: debugpy speaks early.

        More: dropped, and logged.
        """
        if not self._core.single or rank.main:
            self._core.log(10, "rank", f"dropped event {event!r}", rank)
            return
        for client in self._core.attached():
            to_clients.send_event(self._core, client, event, body)


def _note_thread(rank: Rank, id: int, *, runs: bool) -> None:
    """A program whose threads have all ended is over; also where debugpy is as it comes."""
    threads = rank.connection.threads
    if runs:
        if len(threads) < MAX_RUNNING:
            threads.add(id)
    elif id in threads:
        threads.remove(id)
        rank.connection.program_over = not threads


def _job(body: Body, core: SessionState) -> Body:
    name = core.settings.job_name or str(body.get("name"))
    if core.single:
        return {**body, "name": name}
    named = {**body, "name": f"{name} ({len(core.mains)} ranks)"}
    named.pop("systemProcessId", None)
    return named


def _has_own_row(rank: Rank, id: int) -> bool:
    """Whether a thread has a row beside that of its rank."""
    return id in rank.threads and id != main_thread(rank)


# Requests that a rank makes of its client: refused, but for `startDebugging`.

NO_CHILD: Final = "its configuration has no `subProcessId` that is a number"


def answer_request(core: SessionState, events: RankEvents, rank: Rank, message: Message) -> None:
    """Answer a rank's request (`runInTerminal` and the like)."""
    problem = "not supported"
    if message.command == "startDebugging":
        problem = "" if announces_child(message.arguments) else NO_CHILD
    answer = Response(
        core.next_seq(rank.connection), message.seq, not problem, message.command, problem
    )
    assert rank.link is not None
    core.out.append(ToRank(rank.link, encode(answer)))
    if problem:
        core.log(logging.INFO, "rank", f"refused {message.command!r}: {problem}", rank)
    else:
        events.child(rank, plain(message.arguments)["configuration"])


# What happens to each event of a rank: one row each, complete against the DAP schema.
#
# A row is the method of `RankEvents` that handles it, or None where the event is never passed on
# and needs nothing.

EventHandler: TypeAlias = Callable[[RankEvents, Rank, Body], None]


def _with_our_ids(event: str) -> EventHandler:
    """Pass the event on to the clients, its ids exchanged for ours."""
    return lambda events, rank, body: events.translated(event, rank, body)


# Frequent events: a thousand ranks may send them at once, so only the fields in use are decoded.
READ_AT_ONCE: Final[Mapping[str, Callable[[RankEvents, Rank, Raw], None]]] = {
    "stopped": lambda events, rank, body: events.stopped(rank, *stopped_body(body)),
    "dapMuxHeld": lambda events, rank, body: events.held(rank, read(body, Held)),
    "dapMuxStep": lambda events, rank, body: events.step_told.tell(rank, read(body, StepTold)),
}
WHOLE: Final[Mapping[str, EventHandler | None]] = {
    "initialized": RankEvents.initialized,
    "continued": RankEvents.continued,
    "exited": RankEvents.exited,
    "terminated": RankEvents.terminated,
    "thread": RankEvents.thread,
    "output": RankEvents.output,
    "breakpoint": RankEvents.breakpoint,
    "module": lambda events, rank, body: events.once(rank, "module", body["module"], body),
    "loadedSource": lambda events, rank, body: events.once(
        rank, "loadedSource", body["source"], body
    ),
    "process": RankEvents.process,
    "capabilities": RankEvents.capabilities,
    **{name: _with_our_ids(name) for name in ("progressStart", "progressUpdate", "progressEnd")},
    "invalidated": RankEvents.invalidated,
    "memory": _with_our_ids("memory"),
    "debugpySockets": RankEvents.sockets,
    "dapMuxServed": RankEvents.served,
    "dapMuxMark": RankEvents.marked,
    "dapMuxNotFinite": lambda events, rank, body: events.not_finite.tell(
        rank, read_data(body, NotFinite)
    ),
    "debugpyAttach": RankEvents.child,
    "debugpyWaitingForServer": None,
}
EVENT_TABLE: Final[Mapping[str, object]] = {**WHOLE, **READ_AT_ONCE}


def dispatch(events: RankEvents, rank: Rank, message: Message) -> None:
    """Hand a rank's event to its row. Raises `PeerFault` where it is not what DAP says."""
    event = message.event
    if event in READ_AT_ONCE:
        READ_AT_ONCE[event](events, rank, message.body)
        return
    body = event_body(event, message.body)
    if event not in WHOLE:
        events.pass_on(rank, event, body)
        return
    handler = WHOLE[event]
    if handler is not None:
        handler(events, rank, body)
