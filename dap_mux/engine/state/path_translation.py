"""How one client spells paths, and how the session does: both directions, as pure text.

The session spells a path as its first controller's machine does (`pathMappings` turn the ranks'
paths into that). A client may speak URIs, sit on Windows, or have the sources elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import quote, unquote

from dap_mux.pathmap import RankPaths, is_windows
from dap_mux.pathmap.mapping import HERE

_SAFE: Final = "/:@!$&'()*+,;=~"
_REMEMBERED: Final = 4096  # paths; what is beyond is worked out again
_SOMEWHERE: Final = "/\0here"  # a rank's working folder: the same for both sides, whatever it is


@dataclass(frozen=True)
class PathRoute:
    """A client's mappings and the session's, as they hold for the same rank."""

    client: RankPaths
    session: RankPaths

    def to_session(self, path: str) -> str:
        """Return the session's path for a client's, as it is where no mapping speaks of it."""
        return _through(self.client, self.session, path)

    def to_client(self, path: str) -> str:
        """Return the client's path for one of the session's."""
        return _through(self.session, self.client, path)


PathRoutes: TypeAlias = "Callable[[], Sequence[PathRoute]]"


def _through(there: RankPaths, back: RankPaths, path: str) -> str:
    remote = _settled(there).to_remote(path) or path
    found = _settled(back).to_local(remote) or remote
    return path if found.startswith(_SOMEWHERE) else found


def _settled(paths: RankPaths) -> RankPaths:
    roots = ((local, _SOMEWHERE if remote == HERE else remote) for local, remote in paths.roots)
    return RankPaths(tuple(roots))


def no_routes() -> Sequence[PathRoute]:
    """The client's paths lead to the ranks as the session's do."""
    return ()


class PathTranslation:
    """Exchanges paths. What a client has sent comes back to it as it was sent."""

    def __init__(self, *, uri: bool = False, routes: PathRoutes = no_routes) -> None:
        self._uri = uri
        self._routes = routes
        self._sent: dict[str, str] = {}

    def to_session(self, sent: str) -> str:
        """Return the session's path for a client's."""
        path = normal(from_uri(sent) if self._uri else sent)
        found = (route.to_session(path) for route in self._routes())
        path = normal(next((other for other in found if other != path), path))
        self._remember(path, sent)
        return path

    def to_client(self, path: str) -> str:
        """Return the client's path for one of the session's."""
        sent = self._sent.get(path)
        if sent is None:
            found = (route.to_client(path) for route in self._routes())
            sent = normal(next((other for other in found if other != path), path))
            sent = to_uri(sent) if self._uri else sent
            self._remember(path, sent)
        return sent

    def _remember(self, path: str, sent: str) -> None:
        if len(self._sent) >= _REMEMBERED:
            self._sent.clear()
        self._sent[path] = sent


def normal(path: str) -> str:
    r"""Return a path of Windows with its drive letter small and `\` throughout; others as is."""
    if not is_windows(path):
        return path
    path = path.replace("/", "\\")
    return path[0].lower() + path[1:]


def from_uri(text: str) -> str:
    """Return the path of a `file:` URI; anything else as it is."""
    if text[:5].lower() != "file:":
        return text
    path = unquote(text[5:])
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        path = slash + rest if host in ("", "localhost") else f"\\\\{host}\\{rest}"
    return path[1:] if path.startswith("/") and is_windows(path[1:]) else path


def to_uri(path: str) -> str:
    """Return a `file:` URI; what is no absolute path (`<string>`) as it is."""
    if path.startswith("\\\\"):
        return "file:" + quote(path.replace("\\", "/"), _SAFE)
    if is_windows(path):
        return "file:///" + quote(path.replace("\\", "/"), _SAFE)
    return "file://" + quote(path, _SAFE) if path.startswith("/") else path
