"""A client's lines, columns and paths, translated to the session's and back.

The engine and the ranks only see lines and columns that count from 1, and the session's paths. A
client with DAP's defaults has no translation: its messages pass unchanged.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from dap_mux.engine.state.path_translation import PathTranslation
from dap_mux.protocol.exchange import Fields, Id, Kind, Translate, exchange, places_of
from dap_mux.protocol.handle_fields import PLACE_EVENTS, PLACE_RESPONSES


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
