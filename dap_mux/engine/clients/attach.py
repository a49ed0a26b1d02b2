"""The handshake of each client, and its role."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, structs

from dap_mux.engine import admission
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.clients.client_inputs import ClientLeave, introduce, is_on_windows, join, lead
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.requests import Capabilities, offer_restart
from dap_mux.engine.messages.to_clients import Progress, notice_to
from dap_mux.engine.outputs import Admitted, FindRanks
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.state.client import Client, ClientRequest, dialect_of
from dap_mux.engine.state.path_mappings import mappings_of
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.pure.protocol.arguments import AttachArguments, InitializeArguments
from dap_mux.pure.protocol.messages import Body, plain
from dap_mux.pure.protocol.types import UNAUTHORIZED
from dap_mux.pure.protocol.validation import BadArguments, typed

# Attributes that a joining client asks for and does not get, in plain words.
#
# One session has one set of attributes for its ranks: those of its first controller. Where the
# client's files are is its own matter (`join`), and so is what only its editor acts on.

# Attributes of one client, or of its editor: they may differ.
PERSONAL: Final = frozenset(
    """clientOS connect console consoleName consoleTitle cwd debugOptions debugServer endpoints env
    envFile events host insecure internalConsoleOptions listen listenAddress logDir name
    pathMappings port postDebugTask preLaunchTask presentation processId purpose python pythonArgs
    pythonPath ranks request role serverReadyAction tlsCa tlsCert tlsKey token tokenFile type
    valuesAcrossRanks variablePresentation verbosity workspaceFolder""".split()
)
# The values of attributes that are not given: debugpy's defaults, and ours.
DEFAULTS: Final[Body] = {
    "django": False,
    "jinja": False,
    "justMyCode": True,
    "logToFile": False,
    "redirectOutput": False,
    "showReturnValue": False,
    "steppingResumesAllThreads": True,
    "stopOnEntry": False,
    "subProcess": False,
}
# An editor names attributes here that it has set by itself.
EDITOR_DEFAULTS: Final = "__defaults"
_SHOWN: Final = (bool, int, float, str, type(None))


def differences(asked: Body, in_force: Body) -> str:
    """Return what to tell a joiner, "" where it gets what it asked for."""
    unsaid = asked.get(EDITOR_DEFAULTS) or ()  # its user has asked for none of them
    names = [name for name in asked if name not in PERSONAL and not name.startswith("__")]
    names = [name for name in names if name not in unsaid]
    force = {**DEFAULTS, **in_force}
    lines = [_line(name, asked[name], force) for name in names if _differs(name, asked, force)]
    if not lines:
        return ""
    about = "the first client of this session has configured it; in effect for all clients:"
    return "\n".join([about, *lines])


def _differs(name: str, asked: Body, force: Body) -> bool:
    return bool(asked[name] != force.get(name)) and not (not asked[name] and name not in force)


def _line(name: str, asked: Any, force: Body) -> str:
    """Long values are not repeated: they may hold what is nobody else's business."""
    if name not in force:
        return f"  {name} is not set, so yours has no effect"
    if not isinstance(asked, _SHOWN) or not isinstance(force[name], _SHOWN):
        return f"  {name} differs from your configuration"
    return f"  {name} is {_word(force[name])}, not {_word(asked)} as in your configuration"


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value!s:.60}"


# Attach arguments that are for us; the ranks get the rest as it is.
OURS: Final = frozenset(
    """catchDiverged catchNan catchUnequal comm connect endpoints events host listen locate mesh
    pathMappings port processId ranks role scope subProcessId threads token valuesAcrossRanks view
    workspaceFolder""".split()
)

NO_LAUNCH: Final = "this session was not started to launch a job: use an attach configuration"


# The first controller's `attach` has the ranks attached; it is answered after its
# `configurationDone` and never waits for absent ranks. Observers neither start, configure nor keep
# a session.
class ClientAttach(Struct, eq=False):
    """The engine's part that lets clients into the session, from their `initialize` on."""

    _core: SessionState
    _lifecycle: Lifecycle
    _breakpoints: Breakpoints
    _client_events: ClientEvents
    _progress: Progress
    _leave: ClientLeave
    _capabilities: Capabilities
    _set_up_by: Body = {}  # the first controller's arguments
    _finding: dict[int, ClientRequest] = {}

    def initialize(self, request: ClientRequest) -> None:
        """`initialize`: answered here; what the ranks offer is known later, or already."""
        client = request.client
        if client.initialized:
            to_clients.refuse(self._core, request, "already initialized")
            return
        client.about = typed(request.arguments, InitializeArguments)
        client.dialect = dialect_of(client.about.clientID)
        client.initialized = True
        introduce(client)
        offers = {**self._capabilities.now(), **client.dialect.capabilities}
        to_clients.respond(self._core, request, offers)

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
            join(self._core, client)
            to_clients.respond(self._core, request)
            return
        self._join(request)

    def _admit(self, request: ClientRequest, token: str) -> bool:
        """Check the token; who shows a wrong one, or none where one is due, is sent away."""
        client = request.client
        problem = admission.problem(client.token, token, trusted=client.trusted)
        if problem:
            self._core.warn("client", f"refused client {client.id}: {problem.partition(':')[0]}")
            to_clients.refuse(self._core, request, problem, UNAUTHORIZED)
            self._leave.hang_up(client)
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
            self._leave.release_if_alone()
            raise

    def _enter(self, client: Client) -> None:
        joins, before = self._core.flow.wanted, client.translation
        if joins:
            join(self._core, client)
        else:
            self._lead(client)
        self._breakpoints.admit(client, before)
        to_clients.send_event(self._core, client, "initialized")
        if joins:
            self._tell_differences(client)
        if client.path_map.leans and client.path_map.guessed:
            folder = client.path_map.folder
            notice_to(self._core, client, f"pathMappings: the workspace is taken to be {folder}")
        for text in self._core.lasting:
            notice_to(self._core, client, text)
        if self._core.recorded is not None:
            notice_to(self._core, client, self._core.recorded.title)
            for body in self._core.recorded.output:
                to_clients.send_event(self._core, client, "output", {**body})
        self._finish_attach(client)

    def _lead(self, client: Client) -> None:
        """The first controller: what it says of the ranks and their files is the session's."""
        before, self._set_up_by = (self._set_up_by, self._core.path_map), client.arguments
        lead(self._core, client)
        self._core.comm = str(client.arguments.get("comm", ""))
        assert client.attach is not None
        self._catch(typed(client.attach.arguments, AttachArguments))
        arguments = {key: value for key, value in client.arguments.items() if key not in OURS}
        if is_on_windows(client.arguments, client.path_map):
            arguments.setdefault("clientOS", "windows")
        elif is_on_windows(*before):  # debugpy remembers it in the rank
            arguments.setdefault("clientOS", "unix")
        self._lifecycle.connect_all(arguments)

    def _catch(self, asked: AttachArguments) -> None:
        """Have ranks stop at wrong numbers where the session or its first controller says so."""
        own = self._core.own_settings
        self._core.settings = structs.replace(
            own,
            catch_nan=own.catch_nan or asked.catchNan,
            locate=own.locate or asked.locate,
            catch_diverged=own.catch_diverged or asked.catchDiverged,
            catch_unequal=own.catch_unequal or asked.catchUnequal,
        )

    def _tell_differences(self, client: Client) -> None:
        core = self._core
        ours: Body = {"view": core.view, "scope": core.scope, "threads": core.settings.threads}
        redirects = {"redirectOutput": core.settings.redirect_output}
        text = differences(client.arguments, {**redirects, **self._set_up_by, **ours})
        if text:
            to_clients.say_to(core, client, text)

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
        self._leave.returned()
        if client.launched:
            offer_restart(self._core, client)
        first = not self._core.flow.configured
        self._core.flow.configured = self._core.flow.began = True
        self._progress.watch()
        if process := self._core.flow.process:
            to_clients.send_event(self._core, client, "process", process)
        self._client_events.show_rows(client)
        if first:
            self._lifecycle.start_all()
        self._client_events.present(client)
