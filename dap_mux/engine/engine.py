"""`Engine`: the parts put together, and the one way in and out."""

from __future__ import annotations

import logging
from functools import partial
from operator import attrgetter
from typing import Final

from dap_mux.engine import inputs
from dap_mux.engine.breakpoints.edits import Drawer
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.clients.attach import Clients
from dap_mux.engine.clients.attach_progress import Progress
from dap_mux.engine.commands.debug_console.console import Console
from dap_mux.engine.commands.debug_console.evaluate import Evaluation
from dap_mux.engine.commands.debug_console.merged_values import Values
from dap_mux.engine.commands.requests.cast import Cast
from dap_mux.engine.commands.requests.compare import Compare
from dap_mux.engine.commands.requests.groups import Groups
from dap_mux.engine.commands.requests.list_breakpoints import AllBreakpoints
from dap_mux.engine.commands.requests.session_requests import Commands
from dap_mux.engine.evaluate.aggregate_variables import Trees
from dap_mux.engine.evaluate.collective_timeouts import Paused
from dap_mux.engine.evaluate.fan_out import Asking
from dap_mux.engine.evaluate.inspect import Inspector
from dap_mux.engine.evaluate.library_watch import LibraryWatch
from dap_mux.engine.evaluate.meshes import Meshes
from dap_mux.engine.events.dispatch import Events
from dap_mux.engine.events.rank_events import RankEvents
from dap_mux.engine.events.ranks_event import RankNews
from dap_mux.engine.events.restart import Job
from dap_mux.engine.events.session_end import Ending
from dap_mux.engine.injected_sources import InjectedSources
from dap_mux.engine.messages import faults, to_clients, to_ranks
from dap_mux.engine.messages.capabilities import Capabilities
from dap_mux.engine.messages.requests import Handler, Requests
from dap_mux.engine.messages.routes import OFFERED, ROUTES
from dap_mux.engine.outputs import CloseClient, Output, ToRank
from dap_mux.engine.ranks.deaths import Deaths
from dap_mux.engine.ranks.debugger_properties import DebuggerProperties
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.ranks.subprocesses import HEARD
from dap_mux.engine.settings import Settings
from dap_mux.engine.source_files.contents import Sources
from dap_mux.engine.source_files.diagnosis import Files
from dap_mux.engine.state.model import Client, ClientRequest, Dropped, Rank
from dap_mux.engine.state.session import Core
from dap_mux.engine.state.threads import View
from dap_mux.engine.stops.client_events import Announcer
from dap_mux.engine.stops.control import Control
from dap_mux.engine.stops.stop_waiters import Arrivals
from dap_mux.errors import PeerFault
from dap_mux.protocol.messages import NO_RAW, Message, Response, encode, plain
from dap_mux.protocol.rank_messages import announces_child

# After the answer to one of these a rank has no reason to say more by itself.
QUESTIONS = frozenset({"completions", "evaluate", "scopes", "stackTrace", "threads", "variables"})

NOT_INTRODUCED: Final = "the first request is `initialize`"
NO_CHILD: Final = "its configuration has no `subProcessId` that is a number"

# What is done about each input: a method of `Engine`.
INPUTS: Final = {
    inputs.ClientConnected: "_client_connected",
    inputs.ClientSaid: "_client_said",
    inputs.ClientBabbled: "_client_babbled",
    inputs.ClientGone: "_client_gone",
    inputs.ClientStalled: "_client_stalled",
    inputs.ClientReads: "_client_reads",
    inputs.RankKnown: "_rank_known",
    inputs.RankExited: "_rank_exited",
    inputs.RankFailed: "_rank_failed",
    inputs.JobEnded: "_job_ended",
    inputs.JobRestarted: "_job_restarted",
    inputs.RanksFound: "_ranks_found",
    inputs.LinkUp: "_link_up",
    inputs.LinkSaid: "_link_said",
    inputs.LinkDown: "_link_down",
    inputs.LocalHash: "_local_hash",
    inputs.ProcessSeen: "_process_seen",
    inputs.Deadline: "_deadline",
    inputs.Notice: "_notice",
    inputs.Shutdown: "_shutdown",
}


class Engine:
    """The multiplexer. One input in, its outputs out; nothing else has effects."""

    def __init__(self, injected: InjectedSources, settings: Settings | None = None) -> None:
        core = self.core = Core(injected, settings or Settings())
        self.view = View(core)
        self.files = Files(core)
        self.breakpoints = Breakpoints(core, self.files)
        self.news = RankNews(core, self.view)
        self.announcer = Announcer(core, self.view, self.breakpoints)
        self.control = Control(
            core, self.view, self.announcer, lambda: self.lifecycle.request.arguments
        )
        self.sources = Sources(core, self.files)
        self.inspector = Inspector(core, self.view, self.announcer, self.sources)
        self.properties = DebuggerProperties(core)
        self.lifecycle = Lifecycle(core, self)
        self.capabilities = Capabilities(core, OFFERED)
        self.progress = Progress(core)
        self.paused = Paused(core)
        self.job = Job(core)
        self.arrivals = Arrivals(core)
        self.asking = Asking(core, self.arrivals)
        self.drawer = Drawer(core, self.breakpoints)
        self.clients = Clients(
            core,
            self.lifecycle,
            self.breakpoints,
            self.announcer,
            self.view,
            self.capabilities,
            self.progress,
        )
        self.meshes = Meshes(core, self.view, self.announcer, self.news.moved)
        self.libraries = LibraryWatch(core, self.meshes, self.breakpoints)
        self.commands = Commands(
            core, self.view, self.meshes, self.control, self.lifecycle, self.announcer
        )
        self.heard = RankEvents(
            core,
            self.view,
            self.lifecycle,
            self.control.stops,
            self.breakpoints,
            self.capabilities,
        )
        self.deaths = Deaths(core, self.clients.notice)
        self.ending = Ending(
            core, self.lifecycle, self.clients, self.heard, self.progress, self.deaths
        )
        self.casting = Cast(
            core, self.meshes, self.asking, self.arrivals, self.control, self.drawer
        )
        self.groups = Groups(core, self.meshes, self.drawer)
        self.all_breakpoints = AllBreakpoints(core, self.breakpoints, self.drawer)
        self.control.stops.moved = self.moved
        self.heard.has_stopped = self.drawer.stopped
        self.control.stops.before_telling = lambda ids: self.heard.flush(said_by=ids)
        values = Values(core, Trees(core))
        self.comparing = Compare(core, self.asking, self.meshes)
        console = Console(core, self.view, self.meshes, values)
        self.evaluation = Evaluation(
            core, self.asking, self.meshes, self.inspector, console, values
        )
        self._events = Events(self.heard)
        self._requests = Requests(core, self._handlers())
        self._inputs = {kind: getattr(self, name) for kind, name in INPUTS.items()}
        console.bind(self._requests.on_behalf, self.evaluation.ask)

    def _handlers(self) -> dict[str, Handler]:
        rows = ((command, route.handler) for command, route in ROUTES.items())
        return {command: attrgetter(handler)(self) for command, handler in rows if handler}

    def receive(self, happened: inputs.Input) -> list[Output]:
        """Take one input and return everything that must be done about it, in order.

        Raises nothing: an exception that nobody has foreseen is answered and logged (`faults`).
        """
        faults.run(self.core, None, partial(self._inputs[type(happened)], happened))
        out, self.core.out = self.core.out, []
        return out

    def is_quiet(self, link: int, last: Message) -> bool:
        """Whether a rank that said `last` waits for our next question: it owes no more answers."""
        rank = self.core.links.get(link)
        owes = rank is not None and rank.connection.pending
        return not owes and last.type == "response" and last.command in QUESTIONS

    # Clients

    def _client_connected(self, happened: inputs.ClientConnected) -> None:
        client = Client(happened.client, trusted=happened.trusted, token=happened.token)
        self.core.clients[client.id] = client

    def _client_gone(self, happened: inputs.ClientGone) -> None:
        client = self.core.clients.get(happened.client)
        if client:
            self.clients.gone(client)

    def _client_said(self, happened: inputs.ClientSaid) -> None:
        client = self.core.clients.get(happened.client)
        message = happened.message
        if client is None:
            return
        if client.initialized or message.command == "initialize":
            self._requests.hear(client, message)
        elif not client.leaving:
            seq = message.seq if message.type == "request" else None
            self._send_away(client, seq, message.command, NOT_INTRODUCED)

    def _client_babbled(self, happened: inputs.ClientBabbled) -> None:
        client = self.core.clients.get(happened.client)
        if client and not client.leaving:
            self._send_away(client, happened.seq, happened.command, happened.problem)

    def _send_away(self, client: Client, seq: int | None, command: str, problem: str) -> None:
        """Say what was wrong, where there is a request to answer, and hang up."""
        if seq is not None:
            to_clients.refuse(self.core, ClientRequest(client, seq, command, NO_RAW), problem)
        self.clients.gone(client)
        self.core.out.append(CloseClient(client.id))

    def _client_stalled(self, happened: inputs.ClientStalled) -> None:
        client = self.core.clients.get(happened.client)
        if client:
            client.dropped = Dropped()

    def _client_reads(self, happened: inputs.ClientReads) -> None:
        client = self.core.clients.get(happened.client)
        if client:
            to_clients.reads_again(self.core, client)

    def _notice(self, happened: inputs.Notice) -> None:
        self.clients.notice(happened.text, lasting=happened.lasting)

    def _local_hash(self, happened: inputs.LocalHash) -> None:
        self.files.answered(happened)

    # Ranks

    def _rank_known(self, happened: inputs.RankKnown) -> None:
        self.view.id_of(happened.rank)  # rows keep the order in which ranks became known
        self.lifecycle.known(happened.rank, happened.endpoint)

    def _rank_exited(self, happened: inputs.RankExited) -> None:
        rank = self.core.ranks.get(happened.rank)
        if rank:
            rank.fate.wanted |= happened.wanted
            self.lifecycle.exited(rank, happened.code, happened.how)

    def _rank_failed(self, happened: inputs.RankFailed) -> None:
        rank = self.core.ranks.get(happened.rank)
        if rank:
            rank.fate.failure, rank.fate.held = happened.failure, happened.held
            self.moved(rank)

    def _job_ended(self, happened: inputs.JobEnded) -> None:
        self.ending.job_ended(happened.code)

    def _job_restarted(self, happened: inputs.JobRestarted) -> None:
        self.core.flow.restarting = False
        if happened.problem:
            self.clients.notice(happened.problem)
        self.ending.consider()

    def _ranks_found(self, happened: inputs.RanksFound) -> None:
        if happened.settings:
            self.core.adopt(happened.settings)
        self.clients.ranks_found(happened.number, happened.problem)

    def _link_up(self, happened: inputs.LinkUp) -> None:
        rank = self.core.links.get(happened.link)
        if rank:
            self.lifecycle.up(rank)

    def _link_down(self, happened: inputs.LinkDown) -> None:
        rank = self.core.links.get(happened.link)
        if rank:
            self.lifecycle.down(rank, happened)

    def _process_seen(self, happened: inputs.ProcessSeen) -> None:
        self.lifecycle.processes.seen(happened.token, happened.alive)

    def _link_said(self, happened: inputs.LinkSaid) -> None:
        rank = self.core.links.get(happened.link)
        if rank is None:
            return
        message = happened.message
        if message.type == "response":
            to_ranks.answered(self.core, rank, message)
        elif message.type == "event":
            self._hear(rank, message)
        else:
            self._decline(rank, message)

    def _hear(self, rank: Rank, message: Message) -> None:
        """A rank's bytes are hostile too: what cannot be made sense of is logged and dropped."""
        if rank.hidden and message.event not in HEARD:
            return
        try:
            self._events.dispatch(rank, message)
        except PeerFault as error:
            self.core.warn("rank", f"dropped a malformed {message.event!r} event: {error}", rank)

    def _decline(self, rank: Rank, message: Message) -> None:
        """A rank asks its client something (`runInTerminal`): no, but for `startDebugging`."""
        text = "not supported"
        if message.command == "startDebugging":
            text = "" if announces_child(message.arguments) else NO_CHILD
        rank.connection.seq += 1
        answer = Response(rank.connection.seq, message.seq, not text, message.command, text)
        assert rank.link is not None
        self.core.out.append(ToRank(rank.link, encode(answer)))
        if not text:
            self.heard.child(rank, plain(message.arguments)["configuration"])
        else:
            self.core.log(logging.INFO, "rank", f"refused {message.command!r}: {text}", rank)

    # What becomes of ranks (`lifecycle.Watcher`)

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
            self.announcer.joined(rank)
        self.files.live(rank)
        self.paused.live(rank)
        self.libraries.live(rank)

    def lost(self, rank: Rank, was_live: bool) -> None:
        """The rank's connection is gone."""
        if rank.hidden:
            return
        self.heard.close_output(rank)
        self.files.forget(rank)
        self.breakpoints.unavailable(rank)
        if was_live and not self.core.flow.ended:  # then `terminated` says it all
            self.announcer.left(rank)
        self.control.stops.forget(rank)
        self.drawer.lost(rank)
        self.arrivals.moved(rank)
        self.paused.moved(rank)
        self.deaths.consider(rank)
        self.ending.consider()

    def moved(self, rank: Rank) -> None:
        """What `list` shows of a rank has changed."""
        if not rank.hidden:
            self.news.moved(rank)
            self.arrivals.moved(rank)
            self.paused.moved(rank)
            self.libraries.moved(rank)

    def _deadline(self, happened: inputs.Deadline) -> None:
        self.core.fire(happened.token)

    def _shutdown(self, happened: inputs.Shutdown) -> None:
        self.ending.shut_down(happened.reason)
