"""A client's lines, columns and paths, translated to the session's and back.

The engine and the ranks only see lines and columns that count from 1, and the session's paths. A
client with DAP's defaults has no translation: its messages pass unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias
from urllib.parse import quote, unquote

from msgspec import Raw, Struct

from dap_mux.pure.pathmap import HERE, RankPaths, is_windows
from dap_mux.pure.protocol.exchange import Fields, Id, Kind, Translate, exchange, places_of
from dap_mux.pure.protocol.handle_fields import PLACE_EVENTS, PLACE_RESPONSES

# Translates between one client's paths and the session's, as text.
#
# The session's paths are those of its first controller's machine (`pathMappings` translate the
# ranks' paths to them). A client may use URIs, run on Windows, or have the sources elsewhere.

_SAFE: Final = "/:@!$&'()*+,;=~"
_MAX_CACHED_PATHS: Final = 4096
_WORKING_FOLDER: Final = "/\0here"  # stands for a rank's working folder, on both sides


PathRoute: TypeAlias = tuple[RankPaths, RankPaths]
"""A client's mappings and the session's, for the same rank."""
PathRoutes: TypeAlias = Callable[[], Sequence[PathRoute]]


def _through(there: RankPaths, back: RankPaths, path: str) -> str:
    """Return the path that is mapped back to where this one leads, itself if none is."""
    remote = _settled(there).to_remote(path) or path
    found = _settled(back).to_local(remote) or remote
    return path if found.startswith(_WORKING_FOLDER) else found


def _settled(paths: RankPaths) -> RankPaths:
    roots = (
        (local, _WORKING_FOLDER if remote == HERE else remote) for local, remote in paths.roots
    )
    return RankPaths(tuple(roots))


def no_routes() -> Sequence[PathRoute]:
    """Return no routes: the client has the session's mappings."""
    return ()


class PathTranslation:
    """Translates paths. A path that a client has sent is sent back to it as it was spelt."""

    def __init__(self, *, uri: bool = False, routes: PathRoutes = no_routes) -> None:
        self._uri = uri
        self._routes = routes
        self._sent: dict[str, str] = {}

    def to_session(self, sent: str) -> str:
        """Return the session's path for a client's."""
        path = normal(from_uri(sent) if self._uri else sent)
        found = (_through(own, session, path) for own, session in self._routes())
        path = normal(next((other for other in found if other != path), path))
        self._remember(path, sent)
        return path

    def to_client(self, path: str) -> str:
        """Return the client's path for one of the session's."""
        sent = self._sent.get(path)
        if sent is None:
            found = (_through(session, own, path) for own, session in self._routes())
            sent = normal(next((other for other in found if other != path), path))
            sent = to_uri(sent) if self._uri else sent
            self._remember(path, sent)
        return sent

    def _remember(self, path: str, sent: str) -> None:
        if len(self._sent) >= _MAX_CACHED_PATHS:
            self._sent.clear()
        self._sent[path] = sent


def normal(path: str) -> str:
    r"""Return a Windows path with a small drive letter and `\` throughout, others unchanged."""
    if not is_windows(path):
        return path
    path = path.replace("/", "\\")
    return path[0].lower() + path[1:]


def from_uri(text: str) -> str:
    """Return the path of a `file:` URI; anything else unchanged."""
    if text[:5].lower() != "file:":
        return text
    path = unquote(text[5:])
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        path = slash + rest if host in ("", "localhost") else f"\\\\{host}\\{rest}"
    return path[1:] if path.startswith("/") and is_windows(path[1:]) else path


def to_uri(path: str) -> str:
    """Return a `file:` URI; anything but an absolute path (`<string>`) unchanged."""
    if path.startswith("\\\\"):
        return "file:" + quote(path.replace("\\", "/"), _SAFE)
    if is_windows(path):
        return "file:///" + quote(path.replace("\\", "/"), _SAFE)
    return "file://" + quote(path, _SAFE) if path.startswith("/") else path


class ClientTranslation:
    """Translates the messages of one client.

    `lines` and `columns`: the number of the client's first one, 0 or 1. `paths` is None where the
    client uses the session's paths.
    """

    def __init__(self, *, lines: int, columns: int, paths: PathTranslation | None) -> None:
        self._first = {Kind.LINE: lines, Kind.COLUMN: columns}
        self.paths = paths

    def arguments(self, kind: type[Struct], arguments: Raw) -> Raw:
        """Return a request's arguments as the session understands them. Raises PeerFault."""
        return _exchanged(places_of(kind), arguments, self._inward)

    def body(self, command: str, body: Raw) -> Raw:
        """Return a response's body as the client understands it."""
        return _exchanged(PLACE_RESPONSES.get(command), body, self._outward)

    def event(self, name: str, body: Raw) -> Raw:
        """Return an event's body as the client understands it."""
        return _exchanged(PLACE_EVENTS.get(name), body, self._outward)

    def path(self, path: str) -> str:
        """Return the session's path for a client's."""
        return self.paths.to_session(path) if self.paths else path

    def _inward(self, kind: Kind, value: Id) -> Id:
        if isinstance(value, str):
            return self.path(value)
        return value + 1 - self._first[kind]

    def _outward(self, kind: Kind, value: Id) -> Id:
        """Adapters send line 0 for "no line", so the result is never negative."""
        if isinstance(value, str):
            return self.paths.to_client(value) if self.paths else value
        return max(value - 1 + self._first[kind], 0)


def _exchanged(fields: Fields | None, body: Raw, translate: Translate) -> Raw:
    return exchange(body, fields, translate) if fields and body else body
