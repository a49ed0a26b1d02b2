"""Requests about the session as a whole: `threads`, and our own (docs/protocol.md)."""

from __future__ import annotations

from msgspec import Struct

from dap_mux.engine.messages import to_clients
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.session.list import listing
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.selection import SCOPES
from dap_mux.engine.state.session import SessionState
from dap_mux.engine.state.threads import VIEWS, View
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.engine.stops.control import Control
from dap_mux.engine.values.meshes import Meshes
from dap_mux.errors import UsageError
from dap_mux.protocol.types import FocusArguments, ListArguments, RanksArguments, ValueArguments
from dap_mux.protocol.validation import typed


class SessionRequests(Struct, eq=False):
    """The engine's part that answers our own requests."""

    _core: SessionState
    _view: View
    _meshes: Meshes
    _control: Control
    _lifecycle: Lifecycle
    _client_events: ClientEvents

    def threads(self, request: ClientRequest) -> None:
        """`threads`: from the view, without a round trip."""
        rows = self._view.rows(request.client)
        body: Body = {"threads": [{"id": row.id, "name": row.name} for row in rows]}
        to_clients.respond(self._core, request, body)
        self._client_events.threads_answered(request.client)

    def address(self, request: ClientRequest) -> None:
        """`session`: where other clients can connect; an editor that started us does not know."""
        to_clients.respond(self._core, request, {"address": self._core.address or None})

    def list_ranks(self, request: ClientRequest) -> None:
        """`list`: every rank's state and place."""
        arguments = typed(request.arguments, ListArguments)
        states = arguments.states

        def chosen(ranks: list[Rank]) -> None:
            mains = {rank.id for rank in ranks}
            everybody = self._core.ranks.values()
            workers = [rank for rank in everybody if rank.main and rank.main.id in mains]
            body = listing(self._core, self._view, [*ranks, *workers], states)
            to_clients.respond(self._core, request, body)

        self._meshes.choose(request, arguments.ranks, chosen)

    def focus(self, request: ClientRequest) -> None:
        """`focus`: look at this stopped rank; resumes nobody."""
        rank = self._one(typed(request.arguments, FocusArguments))
        if rank.stop is None:
            state = rank.state
            text = f"{self._view.name_of(rank)} is {state}: only a stopped rank can have the focus"
            to_clients.refuse(self._core, request, text)
            return
        frame = (rank.stop.frames or (None,))[0]
        body: Body = {
            "rank": rank.number,
            "worker": rank.worker,
            "group": rank.id[0],
            "threadId": self._view.id_for_stop(request.client, rank),
            "path": frame.path if frame else None,
            "line": frame.line if frame else None,
            "function": frame.name if frame else None,
        }
        to_clients.respond(self._core, request, body)
        self._control.focus(rank)

    def _one(self, arguments: FocusArguments) -> Rank:
        group = arguments.group or self._core.default_group()
        rank = self._core.mains.get((group, arguments.rank))
        if rank is None:
            raise UsageError(f"no rank {arguments.rank} in group {group!r}")
        if arguments.worker is None:
            return rank
        worker = self._core.ranks.get((*rank.rank_id, arguments.worker))
        if worker is None:
            raise UsageError(f"rank {rank.number} has no worker {arguments.worker}")
        return worker

    def scope(self, request: ClientRequest) -> None:
        """`scope`: what one control request acts on."""
        value = _asked(request)
        self._core.scope = _word(value, SCOPES, "scope", self._core.scope)
        to_clients.respond(self._core, request, {"value": self._core.scope})

    def view(self, request: ClientRequest) -> None:
        """`view`: how ranks appear as threads; may change in mid-session."""
        value = _asked(request)
        before, self._core.view = self._core.view, _word(value, VIEWS, "view", self._core.view)
        to_clients.respond(self._core, request, {"value": self._core.view})
        if self._core.view != before:
            for client in self._core.controllers():
                self._client_events.regrouped(client)

    def release(self, request: ClientRequest) -> None:
        """`release`: these ranks are detached and run on."""
        text = typed(request.arguments, RanksArguments).ranks

        def chosen(ranks: list[Rank]) -> None:
            to_clients.respond(self._core, request)
            for rank in ranks:
                self._lifecycle.leave(rank, release=True)

        self._meshes.choose(request, text, chosen)

    def drop(self, request: ClientRequest) -> None:
        """`drop`: these ranks are forgotten; the rest go on without them."""
        text = typed(request.arguments, RanksArguments).ranks

        def chosen(ranks: list[Rank]) -> None:
            to_clients.respond(self._core, request)
            for rank in ranks:
                self._lifecycle.drop(rank)

        self._meshes.choose(request, text, chosen)


def _asked(request: ClientRequest) -> str | None:
    """Return the value to put in force, None where the client only asks for it."""
    value = typed(request.arguments, ValueArguments).value
    if value is not None and request.client.role == "observer":
        raise UsageError(f"an observer may query the {request.command}, but not change it")
    return value


def _word(value: str | None, allowed: tuple[str, ...], name: str, now: str) -> str:
    if value is None:
        return now
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    return value
