"""What happens to each event of a rank: one row each, complete against the DAP schema.

A row is the handler in `rank_events`, or None for what is never passed on and needs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dap_mux.engine.events.rank_events import Handler, RankEvents
from dap_mux.engine.state.model import Rank
from dap_mux.protocol.messages import Message
from dap_mux.protocol.rank_messages import event_body

# Names of `RankEvents`' methods; "=" passes the event on with our ids.
EVENT_TABLE: Final[Mapping[str, str | None]] = {
    "initialized": "initialized",
    "stopped": "stopped",
    "continued": "continued",
    "exited": "exited",
    "terminated": "terminated",
    "thread": "thread",
    "output": "output",
    "breakpoint": "breakpoint",
    "module": "module",
    "loadedSource": "loaded_source",
    "process": "process",
    "capabilities": "capabilities",
    "progressStart": "=",
    "progressUpdate": "=",
    "progressEnd": "=",
    "invalidated": "invalidated",
    "memory": "=",
    "debugpySockets": "sockets",
    "debugpyAttach": "child",
    "debugpyWaitingForServer": None,
}


class Events:
    """Finds the row of an event."""

    def __init__(self, handlers: RankEvents) -> None:
        self._unknown = handlers.unknown
        self._rows: dict[str, Handler | None] = {
            event: _handler(handlers, event, row) for event, row in EVENT_TABLE.items()
        }

    def dispatch(self, rank: Rank, message: Message) -> None:
        """Hand a rank's event to its row. Raises `PeerFault` where it is not what DAP says."""
        event, body = message.event, event_body(message.event, message.body)
        if event not in self._rows:
            self._unknown(rank, event, body)
            return
        handler = self._rows[event]
        if handler:
            handler(rank, body)


def _handler(handlers: RankEvents, event: str, row: str | None) -> Handler | None:
    if row is None:
        return None
    if row == "=":
        return handlers.translated(event)
    handler: Handler = getattr(handlers, row)
    return handler
