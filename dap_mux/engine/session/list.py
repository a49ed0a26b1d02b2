"""`list`: one entry a rank; every key but `actor` is always present, unknown is null."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET

from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.breakpoints.store import FUNCTIONS, Place
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.messages import to_clients
from dap_mux.engine.ranks.deaths import held
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.rank import Rank, RankRow, Stop
from dap_mux.engine.state.session import SessionState, host_of
from dap_mux.engine.state.threads import View, coords_of
from dap_mux.errors import UsageError
from dap_mux.protocol.rank_messages import ActorTold
from dap_mux.rank_sets import STATES


def listing(core: SessionState, view: View, ranks: Iterable[Rank], states: list[str]) -> Body:
    """Return the `list` body; `states` filters the entries, `counts` is of all chosen ranks."""
    _check(states)
    chosen = sorted(ranks, key=lambda rank: rank.id)
    rows = [entry(core, view, rank) for rank in chosen]
    counts = _counts([row.state for row in rows])
    return {"ranks": [row for row in rows if not states or row.state in states], "counts": counts}


def counts_of(ranks: Iterable[Rank]) -> dict[str, int]:
    """Return how many ranks are in each state; every state is a key."""
    return _counts([rank.state for rank in ranks])


def _counts(states: list[str]) -> dict[str, int]:
    return {state: states.count(state) for state in STATES}


def _check(states: list[str]) -> None:
    unknown = [name for name in states if name not in STATES]
    if unknown:
        raise UsageError(f"no state {unknown[0]!r}; there are {', '.join(STATES)}")


def entry(core: SessionState, view: View, rank: Rank) -> RankRow:
    """Return the row of one rank, the kept one where it is up to date.

    It is until the rank moves (`RanksEvent.moved`) or a part of it changes that is no move. A row
    at a barrier is not kept: it counts the ranks there, and others move.
    """
    if rank.at_barrier:
        return new_entry(core, view, rank)
    thread = rank.threads.get(rank.stop.thread) if rank.stop else None
    beside = rank.endpoint, core.mesh_of(rank.id[0]), rank.exit_code, thread
    if rank.row is None or rank.row_beside != beside:
        rank.row, rank.row_beside = new_entry(core, view, rank), beside
    return rank.row


def new_entry(core: SessionState, view: View, rank: Rank) -> RankRow:
    """Return the row of one, made anew."""
    stop = rank.stop if rank.stop and rank.stop.settled else None
    at = rank.at_barrier
    frame = stop.frames[stop.own] if stop and stop.frames else at and at.frame
    endpoint = rank.endpoint
    return RankRow(
        rank.number,
        rank.worker,
        rank.id[0],
        coords_of(core, rank) or None,
        host_of(rank) or None,
        endpoint.pid,
        None if endpoint.dials else str(endpoint),
        rank.state,
        _reason(rank, stop),
        rank.threads.get(stop.thread) if stop else None,
        frame.name if frame else None,
        _module(frame.path) if frame else None,
        frame.path if frame else None,
        frame.line if frame else None,
        view.id_of(rank.id),
        rank.exit_code,
        _actor(stop.actor) if stop and stop.actor else UNSET,
    )


def _reason(rank: Rank, stop: Stop | None) -> str | None:
    """Return why it stands, or waits, or is no more."""
    reason = stop.reason if stop else rank.waits_for or held(rank) or rank.reason
    return rank.wait or reason or None


def _actor(actor: ActorTold) -> Body:
    """Return an actor as its framework shows it; the key is there at stops in one alone."""
    dims, _, places = actor.mesh
    coords = dict(zip(dims, places, strict=False))
    return {"name": actor.name, "rank": actor.rank, "coords": coords or None}


def _module(path: str) -> str | None:
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return name.removesuffix(".py") or None


# `breakpoints`: what every client has set in files, what is wrong with it, and what would help.
#
# An editor hears of its own by DAP; whoever shows all of them (a language server) asks here, again
# after each event `breakpoints`, which only clients get that attach with it among their `events`.

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
