"""Clients' connections and messages, up to the request that a message is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from dap_mux.engine import inputs
from dap_mux.engine.clients.leave import ClientLeave
from dap_mux.engine.messages import to_clients
from dap_mux.engine.messages.requests import Capabilities
from dap_mux.engine.outputs import CloseClient
from dap_mux.engine.state.client import Client, ClientRequest, Dropped, dialect_of
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
from dap_mux.pure.protocol.arguments import InitializeArguments
from dap_mux.pure.protocol.messages import NO_RAW, Body, Message
from dap_mux.pure.protocol.validation import typed

# How a client introduces itself.


class ClientInitialize:
    """The engine's part that answers `initialize`."""

    def __init__(self, core: SessionState, capabilities: Capabilities) -> None:
        self._core = core
        self._capabilities = capabilities
        self._translation = TranslationSetup(core)

    def initialize(self, request: ClientRequest) -> None:
        """`initialize`: answered here; what the ranks offer is known later, or already."""
        client = request.client
        if client.initialized:
            to_clients.refuse(self._core, request, "already initialized")
            return
        client.about = typed(request.arguments, InitializeArguments)
        client.dialect = dialect_of(client.about.clientID)
        client.initialized = True
        self._translation.introduce(client)
        to_clients.respond(self._core, request, self._capabilities.now())


NOT_INTRODUCED: Final = "the first request must be `initialize`"


class ClientInputs(Struct, eq=False):
    """The engine's part that takes the inputs of clients. `hear` takes their messages on."""

    _core: SessionState
    _hear: Callable[[Client, Message], None]
    _leave: ClientLeave

    def said(self, event: inputs.ClientSaid) -> None:
        """A client has sent a message; before `initialize` there is nothing else to say."""
        client = self._core.clients.get(event.client)
        message = event.message
        if client is None:
            return
        if client.initialized or message.command == "initialize":
            self._hear(client, message)
        elif not client.leaving:
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
                self._leave.gone(known)
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
        self._leave.gone(client)
        self._core.out.append(CloseClient(client.id))


# Gives clients their translation: at `initialize`, and again at `attach`.
#
# The session's paths are those of its first controller. A joiner with other local roots is
# translated: its path to the ranks' by its own `pathMappings`, from there by the session's.


class TranslationSetup(Struct, eq=False):
    """Decides which clients need a translation of lines, columns and paths."""

    _core: SessionState

    def introduce(self, client: Client) -> None:
        """`initialize` has told how the client counts."""
        client.translation = _translation(client.about, _paths(client.about, windows=False))

    def lead(self, client: Client) -> None:
        """The first controller: its paths are the session's; everybody else's lead to them."""
        self._core.path_map = client.path_map
        for other in self._core.clients.values():
            if other.role or other is client:
                self.join(other)

    def join(self, client: Client) -> None:
        """`attach` has told where the client's files are."""
        session = self._core.path_map
        own = client.path_map if client.path_map.entries else session  # who says none shares them
        windows = is_on_windows(client.arguments, own)
        # On Windows a root may be spelt in many ways: the way there and back makes it one.
        leads_there = own.entries and (windows or own.entries != session.entries)
        routes = _RouteTable(self._core, own, session).now if leads_there else no_routes
        client.translation = _translation(
            client.about, _paths(client.about, windows=windows, routes=routes)
        )


def is_on_windows(arguments: Body, path_map: PathMap) -> bool:
    """Whether a client's own files are on Windows: it says so, or its local roots do."""
    said = arguments.get("clientOS")
    if isinstance(said, str):
        return said.casefold().startswith("win")
    return any(is_windows(entry.local) for entry in path_map.entries)


def _paths(
    about: InitializeArguments, *, windows: bool, routes: PathRoutes = no_routes
) -> PathTranslation | None:
    uri = about.pathFormat == "uri"
    if not uri and not windows and routes is no_routes:
        return None
    return PathTranslation(uri=uri, routes=routes)


def _translation(
    about: InitializeArguments, paths: PathTranslation | None
) -> ClientTranslation | None:
    if about.linesStartAt1 and about.columnsStartAt1 and paths is None:
        return None
    lines, columns = int(about.linesStartAt1), int(about.columnsStartAt1)
    return ClientTranslation(lines=lines, columns=columns, paths=paths)


class _RouteTable:
    """The ways from a client's paths to the session's, over the ranks there are."""

    def __init__(self, core: SessionState, client: PathMap, session: PathMap) -> None:
        self._core = core
        self._client = client
        self._session = session
        self._of: tuple[Place, ...] = ()
        self._made: Sequence[PathRoute] = ()

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
            client, session = (m.for_rank(place, world) for m in (self._client, self._session))
            yield PathRoute(client, session)
