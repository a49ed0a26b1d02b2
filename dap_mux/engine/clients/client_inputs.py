"""How clients come and go: their connections, how they introduce themselves, their leaving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from dap_mux.engine import inputs
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.clients.lease import Lease
from dap_mux.engine.messages import to_clients
from dap_mux.engine.outputs import CloseClient, EndJob
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.state.client import Client, ClientRequest, Dropped
from dap_mux.engine.state.client_translation import (
    ClientTranslation,
    PathRoute,
    PathRoutes,
    PathTranslation,
    no_routes,
)
from dap_mux.engine.state.path_mappings import place_of
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.pathmap import PathMap, Place, is_windows
from dap_mux.pure.protocol.arguments import DisconnectArguments, InitializeArguments
from dap_mux.pure.protocol.messages import NO_RAW, Body, Message
from dap_mux.pure.protocol.validation import typed

# How a client leaves; the last controller's leaving releases every rank.

RETURN_S: Final = 10.0  # VS Code attaches again within a second, after its tasks have run
NOT_INTRODUCED: Final = "the first request must be `initialize`"
NO_TERMINATE: Final = "this session does not own the job; `disconnect` leaves it running"


class ClientLeave(Struct, eq=False):
    """The engine's part that sees clients come and go."""

    _core: SessionState
    _lifecycle: Lifecycle
    _breakpoints: Breakpoints
    _lease: Lease
    # who attaches again; until then, or so long
    _awaited: tuple[Client, int] | None = None

    def not_introduced(self, client: Client, message: Message) -> None:
        """A client has sent something else before `initialize`."""
        if not client.leaving:
            seq = message.seq if message.type == "request" else None
            self._send_away(client, seq, message.command, NOT_INTRODUCED)

    def take(self, event: inputs.OfClient) -> None:
        """A client's connection has changed."""
        if isinstance(event, inputs.ClientConnected):
            client = Client(event.client, trusted=event.trusted, token=event.token)
            self._core.clients[client.id] = client
            return
        known = self._core.clients.get(event.client)
        if known is None:
            return
        match event:
            case inputs.ClientBabbled():
                if not known.leaving:
                    self._send_away(known, event.seq, event.command, event.problem)
            case inputs.ClientGone():
                self.gone(known)
            case inputs.ClientStalled():
                known.dropped = Dropped()
            case inputs.ClientReads():
                to_clients.reads_again(self._core, known)
            case _:
                inputs.assert_never(event)

    def _send_away(self, client: Client, seq: int | None, command: str, problem: str) -> None:
        """Say what was wrong, where there is a request to answer, and hang up."""
        if seq is not None:
            to_clients.refuse(self._core, ClientRequest(client, seq, command, NO_RAW), problem)
        self.hang_up(client)

    def disconnect(self, request: ClientRequest) -> None:
        """`disconnect`: answered at once. Ends the job where it is ours and the client says so."""
        arguments = typed(request.arguments, DisconnectArguments)
        client = request.client
        client.leaving = True
        ends = self._wants_end(client, arguments) and self._may_end(client)
        returns = bool(arguments.restart) and not ends
        if client.role == "controller":
            to_clients.send_event(self._core, client, "terminated")  # first, as debugpy does
        to_clients.respond(self._core, request, self._farewell(client, returns=returns))
        self.hang_up(client, returns=returns)
        if ends:  # after the ranks' `disconnect`
            self._core.later(lambda: self._core.out.append(EndJob()))

    def _wants_end(self, client: Client, arguments: DisconnectArguments) -> bool:
        """Whether the job is to end with it.

        VS Code's Restart of an attached session is `restart` and `terminateDebuggee` at once: it
        would end a job that it cannot start again.
        """
        if arguments.restart and not client.launched:
            return False
        if arguments.terminateDebuggee is None:
            return client.launched and not arguments.restart
        return arguments.terminateDebuggee

    def _farewell(self, client: Client, *, returns: bool) -> Body | None:
        """Tell who hears of ranks whether its leaving lets them all run on."""
        if "ranks" not in client.events:
            return None
        stay = any(one is not client for one in self._core.attached())
        return {"released": client.role == "controller" and not (stay or returns)}

    def terminate(self, request: ClientRequest) -> None:
        """`terminate`: only where the ranks were started by us, and by a controller."""
        if not self._may_end(request.client):
            to_clients.refuse(self._core, request, NO_TERMINATE)
            return
        to_clients.respond(self._core, request)
        self._core.out.append(EndJob())

    def _may_end(self, client: Client) -> bool:
        return self._core.settings.owns_job and client.role == "controller"

    def gone(self, client: Client, *, returns: bool = False) -> None:
        """A client has left, politely or not.

        `returns`: to attach again at once, as VS Code restarts a session. Then the last
        controller's ranks keep what they are doing for some seconds, and their breakpoints.
        """
        if self._core.clients.pop(client.id, None) is None:
            return
        self._core.cancel(client.sync.timer)
        self._core.cancel(client.focus.held)
        if returns and client.role == "controller" and not self._core.attached():
            self._awaited = client, self._core.after(RETURN_S, self.returned)
            return
        self._core.later(partial(self._breakpoints.forget, client))
        if client.role == "controller":
            self._core.later(partial(self._lease.left, client))
            self._core.later(self.release_if_alone)

    def hang_up(self, client: Client, *, returns: bool = False) -> None:
        """End its connection: what becomes of it is known, as `gone` has it."""
        self.gone(client, returns=returns)
        self._core.out.append(CloseClient(client.id))

    def returned(self) -> None:
        """Drop what was kept for a client that was expected back, attached again or not."""
        if self._awaited is not None:
            (client, timer), self._awaited = self._awaited, None
            self._core.cancel(timer)
            self._core.later(partial(self._breakpoints.forget, client))
            self._core.later(self.release_if_alone)

    def release_if_alone(self) -> None:
        """Without a controller there is nobody to continue the ranks: they are all let go."""
        if not self._core.attached():
            self._core.flow.configured = False
            self._lifecycle.let_all_go()

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


def exit_code(core: SessionState) -> int | None:
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


# Gives clients their translation: at `initialize`, and again at `attach`.
#
# The session's paths are those of its first controller. A joiner with other local roots is
# translated: its path to the ranks' by its own `pathMappings`, from there by the session's.


def introduce(client: Client) -> None:
    """`initialize` has told how the client counts."""
    client.translation = _translation(client.about)


def lead(core: SessionState, client: Client) -> None:
    """The first controller: its paths are the session's; everybody else's lead to them."""
    core.path_map = client.path_map
    for other in core.clients.values():
        if other.role or other is client:
            join(core, other)


def join(core: SessionState, client: Client) -> None:
    """`attach` has told where the client's files are."""
    session = core.path_map
    own = client.path_map if client.path_map.entries else session  # who says none shares them
    windows = is_on_windows(client.arguments, own)
    # On Windows a root may be spelt in many ways: the way there and back makes it one.
    leads_there = own.entries and (windows or own.entries != session.entries)
    routes = _RouteTable(core, own, session).now if leads_there else no_routes
    client.translation = _translation(client.about, windows=windows, routes=routes)


def is_on_windows(arguments: Body, path_map: PathMap) -> bool:
    """Whether a client's own files are on Windows: it says so, or its local roots do."""
    said = arguments.get("clientOS")
    if isinstance(said, str):
        return said.casefold().startswith("win")
    return any(is_windows(entry.local) for entry in path_map.entries)


def _translation(
    about: InitializeArguments, *, windows: bool = False, routes: PathRoutes = no_routes
) -> ClientTranslation | None:
    uri = about.pathFormat == "uri"
    own_paths = uri or windows or routes is not no_routes
    if about.linesStartAt1 and about.columnsStartAt1 and not own_paths:
        return None
    paths = PathTranslation(uri=uri, routes=routes) if own_paths else None
    lines, columns = int(about.linesStartAt1), int(about.columnsStartAt1)
    return ClientTranslation(lines=lines, columns=columns, paths=paths)


class _RouteTable(Struct, eq=False):
    """The ways from a client's paths to the session's, over the ranks there are."""

    _core: SessionState
    _client: PathMap
    _session: PathMap
    _of: tuple[Place, ...] = ()
    _made: Sequence[PathRoute] = ()

    def now(self) -> Sequence[PathRoute]:
        """Return them; worked out again only when ranks came, went or moved."""
        places = tuple(place_of(rank) for rank in self._core.sorted_mains())
        if places != self._of or not self._made:
            self._of, self._made = places, tuple(dict.fromkeys(self._all(places)))
        return self._made

    def _all(self, places: tuple[Place, ...]) -> Iterator[PathRoute]:
        world = self._core.world()
        nowhere = Place((self._core.settings.default_group, 0))
        for place in places or (nowhere,):
            yield self._client.for_rank(place, world), self._session.for_rank(place, world)
