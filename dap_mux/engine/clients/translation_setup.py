"""Gives clients their translation: at `initialize`, and again at `attach`.

The session's paths are those of its first controller. A joiner with other local roots is
translated: its path to the ranks' by its own `pathMappings`, from there by the session's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dap_mux.engine.source_files.path_mappings import place_of
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import Client
from dap_mux.engine.state.client_translation import ClientTranslation
from dap_mux.engine.state.path_translation import PathRoute, PathRoutes, PathTranslation, no_routes
from dap_mux.engine.state.session import SessionState
from dap_mux.pathmap import PathMap, Place, is_windows
from dap_mux.protocol.arguments import InitializeArguments


class TranslationSetup:
    """Decides which clients need a translation of lines, columns and paths."""

    def __init__(self, core: SessionState) -> None:
        self._core = core

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
