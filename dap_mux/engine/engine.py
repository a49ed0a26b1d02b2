"""`Engine`: the parts put together, and the one way in and out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from dap_mux.engine import inputs
from dap_mux.engine.barriers.barriers import Barriers
from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.clients.attach import ClientAttach
from dap_mux.engine.clients.client_inputs import ClientLeave
from dap_mux.engine.clients.lease import Lease
from dap_mux.engine.inputs import Settings
from dap_mux.engine.job_insight.comm_modes import CommModes
from dap_mux.engine.job_insight.library_watch import CollectiveTimeouts, LibraryWatch
from dap_mux.engine.job_insight.partial_moves import OnFound, PartialMoves
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.messages.requests import Capabilities, Requests
from dap_mux.engine.messages.to_clients import Progress, notice
from dap_mux.engine.numerics.diverged import DivergedStops
from dap_mux.engine.numerics.not_finite import NotFiniteStops
from dap_mux.engine.outputs import CloseLink, Output
from dap_mux.engine.ranks.deaths import HEARD, Deaths
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.ranks.patching import DebuggerProperties
from dap_mux.engine.routes import OFFERED, ROUTES, Parts
from dap_mux.engine.session.groups import Actors
from dap_mux.engine.session.rank_events import RankEvents, answer_request, dispatch
from dap_mux.engine.session.rank_output import RankOutput
from dap_mux.engine.session.session_end import JobRestart, SessionEnd
from dap_mux.engine.session.session_requests import (
    AllBreakpoints,
    Pauses,
    RanksEvent,
    SessionRequests,
)
from dap_mux.engine.source_files.contents import CodeTexts, Sources
from dap_mux.engine.source_files.diagnosis import Files
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import Postponed, RowsChanged, SessionState
from dap_mux.engine.state.threads import View
from dap_mux.engine.stops.aggregate import Stops
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.engine.stops.control import Control, StopWaiters
from dap_mux.engine.stops.user_threads import UserThreads
from dap_mux.engine.values.inspect import Inspector, LastAnswers
from dap_mux.engine.values.meshes import Meshes
from dap_mux.pure.errors import PeerFault, StaleHandle, UsageError
from dap_mux.pure.protocol.messages import Message
from dap_mux.pure.rank_sets import RankId
from dap_mux.pure.remote import InjectedSources

# After the answer to one of these a rank has no reason to say more by itself.
QUESTIONS = frozenset({"completions", "evaluate", "scopes", "stackTrace", "threads", "variables"})
EXPECTED: Final = (StaleHandle, UsageError)  # a sentence for the user; nothing is wrong with us


class Engine(Parts):
    """The multiplexer. One input in, its outputs out; nothing else has effects."""

    def __init__(self, injected: InjectedSources, settings: Settings | None = None) -> None:
        core = self.core = SessionState(injected, settings or Settings())
        self.view = View(core)
        self.files = Files(core)
        self.code_texts = CodeTexts(core, self.files)
        self.breakpoints = Breakpoints(core, self.files)
        self.edits = BreakpointEdits(core, self.breakpoints)
        self.client_events = ClientEvents(core, self.view, self.breakpoints)
        self.lifecycle = Lifecycle(core, self)
        self.capabilities = Capabilities(core, OFFERED)
        self.properties = DebuggerProperties(core)
        self.output = RankOutput(core)
        self._add_listeners()
        self._add_clients()
        self._add_commands()
        self._rank_events = RankEvents(
            core,
            self.view,
            self.lifecycle,
            self.control.stops,
            self.breakpoints,
            self.capabilities,
            self.output,
        )
        not_finite = NotFiniteStops(core, self.view, self.partial_moves.stops_alone)
        self.breakpoints.ours_chosen.add(not_finite.chosen)
        self._rank_events.not_finite.add(not_finite.told)
        diverged = DivergedStops(core, self.view, self.partial_moves.stops_alone)
        self.breakpoints.ours_chosen.add(diverged.chosen)
        self._rank_events.step_told.add(diverged.told)
        self._rank_events.actor_told.add(Actors(core, self.meshes, self.edits).told)

    def _add_listeners(self) -> None:
        """Those that follow what ranks do, and what moves them."""
        core = self.core
        self.stop_waiters = StopWaiters(core)
        self.barriers = Barriers(core, self.breakpoints, self.edits)
        self.collective_timeouts = CollectiveTimeouts(core)
        self.meshes = Meshes(core, self.view, self.client_events)
        self.libraries = LibraryWatch(core, self.meshes, self.breakpoints)
        self.comm_modes = CommModes(core, self.meshes)
        self.partial_moves = PartialMoves(core)
        self._followers: tuple[RowsChanged, ...] = (
            RanksEvent(core, self.view).rows_changed,
            self.stop_waiters.rows_changed,
            self.collective_timeouts.rows_changed,
            self.libraries.rows_changed,
            Pauses(core).rows_changed,
            self.barriers.rows_changed,
            self.partial_moves.rows_changed,
        )
        events = self.client_events
        stops = Stops(core, events, self.output, self.barriers, UserThreads(core, events))
        self.control = Control(core, self.view, events, stops)

    def _add_clients(self) -> None:
        core = self.core
        progress = Progress(core)
        self.lease = Lease(core, self.control)
        self.leave = ClientLeave(core, self.lifecycle, self.breakpoints, self.lease)
        self.attach = ClientAttach(
            core,
            self.lifecycle,
            self.breakpoints,
            self.client_events,
            progress,
            self.leave,
            self.capabilities,
        )
        self.deaths = Deaths(core)
        self.session_end = SessionEnd(
            core, self.lifecycle, self.leave, self.output, progress, self.deaths
        )

    def _add_commands(self) -> None:
        """Those that answer requests beyond the ranks' own (`routes`)."""
        core = self.core
        turn_away, acts = self.leave.not_introduced, self.lease.acts
        self._requests = Requests[Parts](core, ROUTES, self, turn_away, acts)
        self.job = JobRestart(core, self.control)
        kinds = {name: route.arguments for name, route in ROUTES.items()}
        sources = Sources(core, self.files)
        self.inspector = Inspector(
            core, self.view, self.client_events, sources, kinds, LastAnswers(core)
        )
        self.commands = SessionRequests(
            core, self.view, self.meshes, self.control, self.lifecycle, self.client_events
        )
        self.all_breakpoints = AllBreakpoints(core, self.breakpoints, self.edits)
        self._take = self._handlers()
        self.barriers.complete.add(self.compare_values)
        self.barriers.overdue.add(self.tell_missing)
        self.partial_moves.due.add(self._move_lasts)

    def _move_lasts(self, run: list[Rank], stand: list[Rank], then: OnFound) -> None:
        self.evidence.look_for_held_up(run, stand, then)

    # `receive` runs each input under the guard, and each call that was put off meanwhile
    # (`SessionState.later`). Nothing else of the engine catches exceptions of every kind. What has
    # been put out before the exception stays out, because the state that goes with it has been
    # changed too. The request on whose behalf something was done (`SessionState.cause`) is answered
    # with an error, with the number under which the log has the traceback.

    def receive(self, event: inputs.Input) -> list[Output]:
        """Take one input and return everything that must be done about it, in order.

        Deferred calls run right after the call that deferred them. Raises nothing: an
        unforeseen exception is answered and logged. Lean: every message comes through here.
        """
        core, take = self.core, self._take[type(event)]
        core.cause = None
        try:
            take(event)
        except Exception as error:  # noqa: BLE001 - the next call is made, whatever this one was
            self._caught(error)
        core.cause = None
        while core.postponed or core.touched:
            if core.postponed:
                self._run_postponed()
            else:
                self._settle()
        out, core.out = core.out, []
        return out

    def _run_postponed(self) -> None:
        calls: list[Postponed] = []
        while self.core.postponed or calls:
            calls.extend(reversed(self.core.postponed))
            self.core.postponed.clear()
            self._guard(*calls.pop())

    def _settle(self) -> None:
        """Notify the followers of every rank that has changed, and announce stops that are due."""
        ranks = [*self.core.touched]
        self.core.touched.clear()
        for follow in self._followers:
            self._guard(partial(follow, ranks))
        self._guard(self.control.stops.consider)

    def _guard(self, call: Callable[[], None], cause: ClientRequest | None = None) -> None:
        """Call on a request's behalf; an exception keeps none of the next calls back."""
        self.core.cause = cause
        try:
            call()
        except Exception as error:  # noqa: BLE001 - the next call is made, whatever this one was
            self._caught(error)
        self.core.cause = None

    def _caught(self, error: Exception) -> None:
        core, request = self.core, self.core.cause
        waits = request is not None and not request.answered
        text = str(error) if waits and isinstance(error, EXPECTED) else core.fault(error)
        if request is not None and waits:
            to_clients.refuse(core, request, text)
            request.failed = True

    # Inputs

    def _handlers(self) -> dict[type, Callable[[Any], None]]:
        """Return what is called with an input of each type."""
        clients, lifecycle = self.leave, self.lifecycle
        return {
            inputs.LinkSaid: self._link_said,
            inputs.ClientSaid: self._requests.said,
            inputs.Deadline: lambda event: self.core.fire(event.token),
            inputs.ClientConnected: clients.take,
            inputs.ClientBabbled: clients.take,
            inputs.ClientGone: clients.take,
            inputs.ClientStalled: clients.take,
            inputs.ClientReads: clients.take,
            inputs.RankKnown: self._rank_known,
            inputs.RankExited: self._rank_exited,
            inputs.RankFailed: self._rank_failed,
            inputs.LinkUp: self._link_up,
            inputs.LinkDown: self._link_down,
            inputs.ProcessSeen: lambda event: lifecycle.processes.seen(event.token, event.alive),
            inputs.ProcessesRead: self.core.shell_answered,
            inputs.LocalHash: self.core.shell_answered,
            inputs.LocalText: self.core.shell_answered,
            inputs.JobEnded: lambda event: self.session_end.job_ended(event.code),
            inputs.JobRestarted: self._job_restarted,
            inputs.RanksFound: self._ranks_found,
            inputs.Listening: self._listening,
            inputs.Notice: lambda event: notice(self.core, event.text, lasting=event.lasting),
            inputs.Recorded: self._recorded,
            inputs.Shutdown: lambda event: self.session_end.shut_down(event.reason),
        }

    def _rank_known(self, event: inputs.RankKnown) -> None:
        self.view.id_of(event.rank)  # rows keep the order in which ranks became known
        self.lifecycle.known(event.rank, event.endpoint)
        self.capabilities.rank_known(event.endpoint.traits)

    def _rank_exited(self, event: inputs.RankExited) -> None:
        rank = self.core.ranks.get(event.rank)
        if rank is not None:
            rank.fate.wanted |= event.wanted
            self.lifecycle.exited(rank, event.code, event.how)

    def _rank_failed(self, event: inputs.RankFailed) -> None:
        rank = self.core.ranks.get(event.rank)
        if rank is not None:
            rank.fate.failure, rank.fate.held = event.failure, event.held
            self.core.touch(rank)

    def _link_up(self, event: inputs.LinkUp) -> None:
        rank = self.core.links.get(event.link)
        if rank is None:  # it was given up while it was being made
            self.core.out.append(CloseLink(event.link))
        else:
            self.lifecycle.handshake.begin(rank)

    def _link_down(self, event: inputs.LinkDown) -> None:
        rank = self.core.links.get(event.link)
        if rank is not None:
            self.lifecycle.down(rank, event)

    def _recorded(self, event: inputs.Recorded) -> None:
        self.core.recorded = event
        notice(self.core, event.title)

    def _listening(self, event: inputs.Listening) -> None:
        self.core.address = event.address

    def _job_restarted(self, event: inputs.JobRestarted) -> None:
        self.core.flow.restarting = False
        if event.problem:
            notice(self.core, event.problem)
        self.session_end.consider()

    def _ranks_found(self, event: inputs.RanksFound) -> None:
        problem = event.problem
        if event.settings:
            self.core.adopt(event.settings)
            if event.settings.replays:
                self.capabilities.tell_change()  # before the next `initialize` counts as told
        if isinstance(problem, Exception):
            problem = self.core.fault(problem)
        self.attach.ranks_found(event.number, problem)

    def collect(self, link: int, frame: bytes, message: Message | None = None) -> bool:
        """Take the answer of one of many ranks that were asked the same, if that is all there is.

        False where more may come of it: it is an input then; or where others have not sent the same
        frame: then its `message` is needed. Lean: a thousand answer at once.
        """
        rank = self.core.links.get(link)
        if rank is None:
            return False
        pending = rank.connection.pending
        if len(pending) != 1:
            return False
        ((seq, owed),) = pending.items()
        if owed.collect is None or not owed.collect(rank, seq, frame, message):
            return False
        pending.clear()
        return True

    def is_quiet(self, link: int, last: Message) -> bool:
        """Whether a rank that said `last` waits for our next question: it owes no more answers."""
        rank = self.core.links.get(link)
        owes = rank is not None and rank.connection.pending
        return not owes and last.type == "response" and last.command in QUESTIONS

    @property
    def knows_ranks(self) -> bool:
        """Whether the session has any rank."""
        return bool(self.core.mains)

    @property
    def began(self) -> bool:
        """Whether the ranks' programs run."""
        return self.core.flow.began

    def not_gone(self) -> list[RankId]:
        """Return the ranks whose processes are not known to have ended."""
        return [rank.rank_id for rank in self.core.sorted_mains() if rank.phase is not Phase.GONE]

    def hosts(self) -> dict[RankId, str]:
        """Return the hosts of the ranks whose processes are known."""
        known = [rank for rank in self.core.sorted_mains() if rank.endpoint.pid is not None]
        return {rank.rank_id: rank.endpoint.host_name or rank.endpoint.host for rank in known}

    # Ranks

    def _link_said(self, event: inputs.LinkSaid) -> None:
        rank = self.core.links.get(event.link)
        if rank is None:
            return
        message = event.message
        if message.type == "response":
            to_ranks.answered(self.core, rank, message)
        elif message.type == "event":
            self._hear(rank, message)
        else:
            answer_request(self.core, self._rank_events, rank, message)

    def _hear(self, rank: Rank, message: Message) -> None:
        """A rank's bytes are hostile too: what cannot be made sense of is logged and dropped."""
        if rank.hidden and message.event not in HEARD:
            return
        try:
            dispatch(self._rank_events, rank, message)
        except PeerFault as error:
            self.core.warn("rank", f"dropped a malformed {message.event!r} event: {error}", rank)

    # The ends of ranks (`lifecycle.Watcher`)

    def configuring(self, rank: Rank) -> None:
        """The rank takes breakpoints now, and does not run on before its `configurationDone`."""
        if rank.connection.offers is not None:
            self.capabilities.offered(rank.connection.offers)
        self.properties.configure(rank)
        self.breakpoints.configure(rank)
        self.inspector.rank_answers(rank)

    def live(self, rank: Rank) -> None:
        """The rank is attached: its row appears (a single rank tells its threads itself)."""
        if self.view.mode() == "ranks":
            self.client_events.joined(rank)
        self._rank_events.live(rank)
        self.files.live(rank)
        self.collective_timeouts.live(rank)
        self.libraries.live(rank)
        self.comm_modes.live(rank)

    def lost(self, rank: Rank, was_live: bool) -> None:
        """The rank's connection is gone."""
        if rank.hidden:
            return
        self.output.close(rank)
        self.files.forget(rank)
        self.breakpoints.unavailable(rank)
        if was_live and not self.core.flow.ended:  # then `terminated` says it all
            self.client_events.left(rank)
        self.control.stops.forget(rank)
        self.edits.lost(rank)
        self.deaths.consider(rank)
        self.session_end.consider()
