"""Who speaks to us: the handshake of each client, its role, and its leaving.

The first controller's `attach` has the ranks attached; it is answered
after its `configurationDone` and never waits for absent ranks. Observers neither start,
configure nor keep a session. The last controller's leaving releases every rank.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from dap_mux.engine import admission
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.clients.attach_conflicts import differences
from dap_mux.engine.clients.attach_progress import Progress
from dap_mux.engine.clients.translation_setup import Edges, is_on_windows
from dap_mux.engine.messages import faults, to_clients
from dap_mux.engine.messages.capabilities import Capabilities
from dap_mux.engine.outputs import Admitted, CloseClient, EndJob, FindRanks
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.source_files.path_mappings import mappings_of
from dap_mux.engine.state.client_dialects import dialect_of
from dap_mux.engine.state.model import Body, Client, ClientRequest
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.session import Core
from dap_mux.engine.state.threads import View
from dap_mux.engine.stops.client_events import Announcer
from dap_mux.protocol.messages import plain
from dap_mux.protocol.types import (
    AttachArguments,
    BadArguments,
    DisconnectArguments,
    InitializeArguments,
    typed,
)

# Attach arguments that are for us; the ranks get the rest as it is.
OURS: Final = frozenset(
    {
        "connect",
        "host",
        "listen",
        "port",
        "processId",
        "subProcessId",
        "ranks",
        "endpoints",
        "token",
        "role",
        "events",
        "view",
        "scope",
        "threads",
        "mesh",
        "pathMappings",
        "workspaceFolder",
    }
)


class Clients:
    """The engine's part that owns the clients' sessions."""

    def __init__(
        self,
        core: Core,
        lifecycle: Lifecycle,
        breakpoints: Breakpoints,
        announcer: Announcer,
        view: View,
        capabilities: Capabilities,
        progress: Progress,
    ) -> None:
        self._core = core
        self._lifecycle = lifecycle
        self._breakpoints = breakpoints
        self._announcer = announcer
        self._view = view
        self._capabilities = capabilities
        self._progress = progress
        self._edges = Edges(core)
        self._set_up_by: Body = {}  # the first controller's arguments
        self._finding: dict[int, ClientRequest] = {}
        self._lasting: list[str] = []

    # Coming

    def initialize(self, request: ClientRequest) -> None:
        """`initialize`: answered here; what the ranks offer is known later, or already."""
        client = request.client
        if client.initialized:
            to_clients.refuse(self._core, request, "already initialized")
            return
        client.about = typed(request.arguments, InitializeArguments)
        client.dialect = dialect_of(client.about.clientID)
        client.initialized = True
        self._edges.introduce(client)
        to_clients.respond(self._core, request, self._capabilities.now())

    def attach(self, request: ClientRequest) -> None:
        """`attach`, and `launch` where the job is ours: join the session."""
        client = request.client
        if client.role:
            to_clients.refuse(self._core, request, f"already attached as {client.role}")
            return
        ours = typed(request.arguments, AttachArguments)
        if not self._admit(request, ours.token):
            return
        settings = self._core.settings
        if request.command == "launch" and not (settings.owns_job or settings.ranks_from_client):
            to_clients.refuse(self._core, request, NO_LAUNCH)
            return
        client.arguments = admission.without_token(plain(request.arguments))
        client.launched = request.command == "launch"
        client.events = frozenset(ours.events)
        if ours.role not in ("controller", "observer"):
            raise BadArguments(f"role must be controller or observer, not {ours.role!r}")
        client.path_map = mappings_of(client.arguments, settings.folder)
        if ours.role == "observer":
            client.role = "observer"
            self._breakpoints.forget(client)
            self._edges.join(client)
            to_clients.respond(self._core, request)
            return
        self._join(request)

    def _admit(self, request: ClientRequest, token: str) -> bool:
        """Check the token; who shows a wrong one, or none where one is due, is sent away."""
        client = request.client
        problem = admission.problem(client.token, token, trusted=client.trusted)
        if problem:
            self._core.warn("client", f"refused client {client.id}: {problem.partition(':')[0]}")
            to_clients.turn_away(self._core, request, problem)
            self.gone(client)
            self._core.out.append(CloseClient(client.id))
        elif not client.trusted:
            client.trusted = True
            self._core.out.append(Admitted(client.id))
        return not problem

    def _join(self, request: ClientRequest) -> None:
        client = request.client
        client.role = "controller"
        if self._core.settings.ranks_from_client and not self._core.ranks:
            self._finding[request.number] = request
            arguments = request.client.arguments
            self._core.out.append(FindRanks(request.number, request.command, arguments))
            return
        self._begin(request)

    def ranks_found(self, number: int, problem: str) -> None:
        """The session knows who the ranks are that this client named, or why it does not."""
        request = self._core.cause = self._finding.pop(number, None)
        if request is None or request.client.id not in self._core.clients:
            return
        if problem:
            request.client.role = ""
            to_clients.refuse(self._core, request, problem)
            return
        self._begin(request)

    def _begin(self, request: ClientRequest) -> None:
        """Join the session; where that fails half-way, the client may try again."""
        client = request.client
        client.attach = request
        try:
            self._enter(client)
        except Exception:
            client.role, client.attach = "", None
            if not self._controllers():
                self._release_all()
            raise

    def _enter(self, client: Client) -> None:
        joins, before = self._lifecycle.request.wanted, client.edge
        if joins:
            self._edges.join(client)
        else:
            self._lead(client)
        self._breakpoints.admit(client, before)
        to_clients.send_event(self._core, client, "initialized")
        if joins:
            self._tell_differences(client)
        if client.path_map.leans and client.path_map.guessed:
            self._tell(
                client, f"pathMappings: the workspace is taken to be {client.path_map.folder}"
            )
        for text in self._lasting:
            self._tell(client, text)
        self._finish_attach(client)

    def _lead(self, client: Client) -> None:
        """The first controller: what it says of the ranks and their files is the session's."""
        before, self._set_up_by = (self._set_up_by, self._core.path_map), client.arguments
        self._edges.lead(client)
        arguments = upstream_arguments(client.arguments)
        if is_on_windows(client.arguments, client.path_map):
            arguments.setdefault("clientOS", "windows")
        elif is_on_windows(*before):  # debugpy remembers it in the rank
            arguments.setdefault("clientOS", "unix")
        self._lifecycle.connect_all(arguments)

    def _tell_differences(self, client: Client) -> None:
        core = self._core
        ours: Body = {"view": core.view, "scope": core.scope, "threads": core.settings.threads}
        redirects = {"redirectOutput": core.settings.redirect_output}
        text = differences(client.arguments, {**redirects, **self._set_up_by, **ours})
        if text:
            body: Body = {"category": "console", "output": text}
            to_clients.send_event(core, client, "output", body)

    def configuration_done(self, request: ClientRequest) -> None:
        """`configurationDone`: the ranks may run on; answers `attach` too."""
        client = request.client
        to_clients.respond(self._core, request)
        client.configured = True
        self._finish_attach(client)

    def _finish_attach(self, client: Client) -> None:
        if not client.configured or client.attach is None:
            return
        request, client.attach = client.attach, None
        to_clients.respond(self._core, request)
        first = not self._core.flow.configured
        self._core.flow.configured = self._core.flow.began = True
        self._progress.watch()
        self._tell_job(client)
        if first:
            self._lifecycle.start_all()
        self._announcer.present(client)

    def _tell_job(self, client: Client) -> None:
        process = self._core.flow.process
        if process:
            to_clients.send_event(self._core, client, "process", process)
        if self._view.mode() != "classes":
            for row in self._view.rows(client):
                body: Body = {"reason": "started", "threadId": row.id}
                to_clients.send_event(self._core, client, "thread", body)

    # Asking about the session

    def threads(self, request: ClientRequest) -> None:
        """`threads`: from the view, without a round trip."""
        rows = self._view.rows(request.client)
        body: Body = {"threads": [{"id": row.id, "name": row.name} for row in rows]}
        to_clients.respond(self._core, request, body)
        self._announcer.threads_answered(request.client)

    # Leaving

    def disconnect(self, request: ClientRequest) -> None:
        """`disconnect`: answered at once. Ends the job where it is ours and the client says so."""
        arguments = typed(request.arguments, DisconnectArguments)
        client = request.client
        wants_end = arguments.terminateDebuggee
        if wants_end is None:
            wants_end = client.launched and not arguments.restart
        client.leaving = True
        ends = wants_end and self._may_end(client)
        if client.role == "controller":
            to_clients.send_event(self._core, client, "terminated")  # first, as debugpy does
        to_clients.respond(self._core, request, self._farewell(client))
        self.gone(client)
        self._core.out.append(CloseClient(client.id))
        if ends:
            self._core.out.append(EndJob())

    def _farewell(self, client: Client) -> Body | None:
        """Tell who hears of ranks whether its leaving lets them all run on."""
        if "ranks" not in client.events:
            return None
        others = self._core.clients.values()
        stay = any(one.role == "controller" for one in others if one is not client)
        return {"released": client.role == "controller" and not stay}

    def terminate(self, request: ClientRequest) -> None:
        """`terminate`: only where the ranks were started by us, and by a controller."""
        if not self._may_end(request.client):
            to_clients.refuse(self._core, request, NO_TERMINATE)
            return
        to_clients.respond(self._core, request)
        self._core.out.append(EndJob())

    def _may_end(self, client: Client) -> bool:
        return self._core.settings.owns_job and client.role == "controller"

    def gone(self, client: Client) -> None:
        """A client has left, politely or not."""
        if self._core.clients.pop(client.id, None) is None:
            return
        self._core.cancel(client.sync.timer)
        self._core.cancel(client.focus.held)
        faults.run(self._core, None, lambda: self._breakpoints.forget(client))
        if client.role == "controller" and not self._controllers():
            self._release_all()

    def _controllers(self) -> list[Client]:
        """Return who is attached as one, configured or not."""
        return [client for client in self._core.clients.values() if client.role == "controller"]

    def _release_all(self) -> None:
        """Nobody is left to continue them: every rank runs on, and the session waits."""
        self._lifecycle.request.wanted = False
        self._core.flow.configured = False
        for rank in self._core.sorted_ranks():
            if rank.phase is not Phase.RELEASED:
                leave = partial(self._lifecycle.leave, rank, release=False)
                faults.run(self._core, None, leave)

    def notice(self, text: str, *, lasting: bool = False) -> None:
        """Tell every controller, configured or not: why ranks fail may be known that early."""
        if lasting:
            self._lasting.append(text)
        for client in list(self._core.clients.values()):
            if client.role == "controller":
                self._tell(client, text)

    def _tell(self, client: Client, text: str) -> None:
        body: Body = {"category": "stderr", "output": f"dap-mux: {text}\n"}
        to_clients.send_event(self._core, client, "output", body)

    def say_goodbye(self) -> None:
        """The session is over: `terminated`, once, to everybody who was told of a beginning."""
        code = exit_code(self._core)
        for client in list(self._core.clients.values()):
            if client.attach is not None:
                pending, client.attach = client.attach, None
                to_clients.respond(self._core, pending)
            if client.role == "controller":
                if code is not None:
                    to_clients.send_event(self._core, client, "exited", {"exitCode": code})
                to_clients.send_event(self._core, client, "terminated")


NO_LAUNCH: Final = "this session was not started to launch a job: use an attach configuration"
NO_TERMINATE: Final = "this session does not own the job; `disconnect` leaves it running"


def upstream_arguments(arguments: Body) -> Body:
    """Return what the ranks get of a client's attach arguments."""
    return {key: value for key, value in arguments.items() if key not in OURS}


def exit_code(core: Core) -> int | None:
    """Return the job's exit code for the `exited` event, None where nobody saw the ranks end.

    Zero if all ended with zero; else the first failing rank's, a signal n as 128 + n.
    """
    if core.flow.job_code is not None:
        return core.flow.job_code
    codes = [rank.exit_code for rank in core.sorted_ranks() if rank.exit_code is not None]
    if not codes:
        return None
    failed = next((code for code in codes if code), 0)
    return 128 - failed if failed < 0 else failed
