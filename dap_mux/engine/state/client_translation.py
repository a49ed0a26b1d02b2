"""The edge of a client: lines, columns and paths as it counts and spells them.

The inside of the engine, and every rank, only ever sees lines and columns from 1 and the paths
of the session. A client with DAP's defaults has no edge, and its messages pass as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from dap_mux.engine.state.path_translation import Spelling
from dap_mux.protocol.handle_fields import exchange
from dap_mux.protocol.handle_paths import Fields, Id, Kind, Translate
from dap_mux.protocol.place_fields import PLACE_EVENTS, PLACE_REQUESTS, PLACE_RESPONSES


class Edge:
    """What is exchanged in the messages of one client. `spelling` None: paths are the session's.

    `lines` and `columns`: what the client counts its first one as, 0 or 1.
    """

    def __init__(self, *, lines: int, columns: int, spelling: Spelling | None) -> None:
        self._first = {Kind.LINE: lines, Kind.COLUMN: columns}
        self.spelling = spelling

    def arguments(self, command: str, arguments: Raw) -> Raw:
        """Return a request's arguments as the session understands them. Raises PeerFault."""
        return _exchanged(PLACE_REQUESTS, command, arguments, self._inward)

    def body(self, command: str, body: Raw) -> Raw:
        """Return a response's body as the client understands it."""
        return _exchanged(PLACE_RESPONSES, command, body, self._outward)

    def event(self, name: str, body: Raw) -> Raw:
        """Return an event's body as the client understands it."""
        return _exchanged(PLACE_EVENTS, name, body, self._outward)

    def path(self, path: str) -> str:
        """Return the session's path for a client's."""
        return self.spelling.to_session(path) if self.spelling else path

    def _inward(self, kind: Kind, value: Id) -> Id:
        if isinstance(value, str):
            return self.path(value)
        return value + 1 - self._first[kind]

    def _outward(self, kind: Kind, value: Id) -> Id:
        """0 is what adapters say for no line at all: nobody counts below his first."""
        if isinstance(value, str):
            return self.spelling.to_client(value) if self.spelling else value
        return max(value - 1 + self._first[kind], 0)


def _exchanged(table: Mapping[str, Fields], name: str, body: Raw, translate: Translate) -> Raw:
    fields = table.get(name)
    return exchange(body, fields, translate) if fields and body else body
