"""`breakpoints`: what every client has set in files, what is wrong with it, and what would help.

An editor hears of its own by DAP; whoever shows all of them (a language server) asks here, again
after each event `breakpoints`, which only clients get that attach with it among their `events`.
"""

from __future__ import annotations

from typing import Final

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.breakpoints.store import FUNCTIONS, Place
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.session import SessionState

EVENT: Final = "breakpoints"
COALESCE_WINDOW_S: Final = 0.05


class AllBreakpoints:
    """The engine's part that answers `breakpoints`, and says when to ask again."""

    def __init__(
        self, core: SessionState, breakpoints: Breakpoints, edits: BreakpointEdits
    ) -> None:
        self._core = core
        self._breakpoints = breakpoints
        self._edits = edits
        self._timer: int | None = None
        breakpoints.touched.add(self._touched)

    def all(self, request: ClientRequest) -> None:
        """`breakpoints`."""
        items = [(place, item) for place, item in self._edits.items() if place != FUNCTIONS]
        body: Body = {"breakpoints": [self._entry(place, item) for place, item in items]}
        to_clients.respond(self._core, request, body)

    def _entry(self, place: Place, item: Breakpoint) -> Body:
        told, wrong, proposals = self._breakpoints.described(item)
        return {
            "id": item.id,
            "path": place,
            "line": told.get("line", item.body.get("line")),
            "condition": item.body.get("condition"),
            "verified": told["verified"],
            "message": wrong or None,
            "mappings": [{"entry": one.entry, "instead": one.instead} for one in proposals],
        }

    def _touched(self) -> None:
        listening = any(EVENT in client.events for client in self._core.clients.values())
        if listening and self._timer is None:
            self._timer = self._core.after(COALESCE_WINDOW_S, self._tell)

    def _tell(self) -> None:
        self._timer = None
        for client in list(self._core.clients.values()):
            if EVENT in client.events:
                to_clients.send_event(self._core, client, EVENT, {})
