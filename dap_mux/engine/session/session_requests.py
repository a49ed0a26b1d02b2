"""Requests about the session as a whole: `threads`, and our own (docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import UNSET, Struct

from dap_mux.engine import outputs
from dap_mux.engine.breakpoints.edits import BreakpointEdits
from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.breakpoints.store import FUNCTIONS, Place
from dap_mux.engine.breakpoints.sync import Breakpoints
from dap_mux.engine.messages import to_clients
from dap_mux.engine.ranks.deaths import held
from dap_mux.engine.ranks.lifecycle import Lifecycle
from dap_mux.engine.state.client import ClientRequest
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank, RankRow, Stop
from dap_mux.engine.state.selection import SCOPES
from dap_mux.engine.state.session import SessionState, host_of
from dap_mux.engine.state.threads import VIEWS, View, coords_of
from dap_mux.engine.stops.client_events import ClientEvents
from dap_mux.engine.stops.control import Control
from dap_mux.engine.values.meshes import Meshes
from dap_mux.pure.errors import UsageError
from dap_mux.pure.grouping import grouped
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.rank_messages import ActorTold
from dap_mux.pure.protocol.types import (
    FocusArguments,
    ListArguments,
    RanksArguments,
    ValueArguments,
)
from dap_mux.pure.protocol.validation import typed
from dap_mux.pure.rank_sets import STATES, RankSetError
from dap_mux.pure.rank_sets.world import DebuggeeId

# `list`: one entry a rank; every key but `actor` is always present, unknown is null.


_KEYS: Final = dict(zip(RankRow.__struct_fields__, RankRow.__struct_encode_fields__, strict=True))
_WHO: Final = {"rank", "worker", "group"}  # in every entry of the event `ranks`


def _folded(news: Iterable[Body]) -> list[Body]:
    """Make one entry of those that differ in nothing but the rank: its `rank` is a list."""
    entries = grouped((repr({**each, "rank": None}), each) for each in news)
    return [
        equal[0] if len(equal) == 1 else {**equal[0], "rank": [each["rank"] for each in equal]}
        for equal in entries.values()
    ]


def listing(core: SessionState, view: View, ranks: Iterable[Rank], states: list[str]) -> Body:
    """Return the `list` body; `states` filters the entries, `counts` is of all chosen ranks."""
    unknown = [name for name in states if name not in STATES]
    if unknown:
        raise UsageError(f"no state {unknown[0]!r}; there are {', '.join(STATES)}")
    chosen = sorted(ranks, key=lambda rank: rank.id)
    rows = [entry(core, view, rank) for rank in chosen]
    counts = counts_of(chosen)
    return {"ranks": [row for row in rows if not states or row.state in states], "counts": counts}


def counts_of(ranks: Iterable[Rank]) -> dict[str, int]:
    """Return how many ranks are in each state; every state is a key."""
    states = [rank.state for rank in ranks]
    return {state: states.count(state) for state in STATES}


def entry(core: SessionState, view: View, rank: Rank) -> RankRow:
    """Return the row of one rank, the kept one where it is up to date.

    It is until the rank moves (`RanksEvent.moved`) or a part of it changes that is no move. A row
    at a barrier is not kept: it counts the ranks there, and others move.
    """
    if rank.at_barrier:
        return _noted(rank, new_entry(core, view, rank))
    thread = rank.threads.get(rank.stop.thread) if rank.stop else None
    beside = rank.endpoint, core.mesh_of(rank.id[0]), rank.exit_code, thread
    if rank.row is None or rank.row_beside != beside:
        rank.row, rank.row_beside = _noted(rank, new_entry(core, view, rank)), beside
    return rank.row


def _noted(rank: Rank, row: RankRow) -> RankRow:
    """Note what differs from the row that clients had before, by an event or by `list`.

    Also what has changed back since: a client may have listed the rank in between.
    """
    before, rank.seen = rank.seen, row
    if before is None:
        rank.news = {*_KEYS}
    elif before != row:
        rank.news |= {key for key in _KEYS if getattr(before, key) != getattr(row, key)}
    return row


def _news(rank: Rank, row: RankRow) -> Body:
    """Return what changed of a row, by the keys of `list`; nothing at all if nothing did."""
    news, rank.news = rank.news, set()
    if not news:
        return {}
    told = {name: getattr(row, key) for key, name in _KEYS.items() if key in news | _WHO}
    if len(told) == len(_KEYS) and row.actor is UNSET:
        del told["actor"]  # a new row is as in `list`
    return {name: None if value is UNSET else value for name, value in told.items()}


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

BREAKPOINTS_EVENT: Final = "breakpoints"
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
        listening = any(
            BREAKPOINTS_EVENT in client.events for client in self._core.clients.values()
        )
        if listening and self._timer is None:
            self._timer = self._core.after(COALESCE_WINDOW_S, self._tell)

    def _tell(self) -> None:
        self._timer = None
        to_clients.send_to_listeners(self._core, BREAKPOINTS_EVENT, {})


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

        def chosen(_: list[Rank]) -> None:
            self._core.scope = value or self._core.scope
            to_clients.respond(self._core, request, {"value": self._core.scope})

        if value is None or value in SCOPES:
            chosen([])
            return
        try:
            self._meshes.choose(request, value, chosen)
        except RankSetError as error:
            known = ", ".join(SCOPES)
            raise UsageError(f"scope must be one of {known}, or a rank set: {error}") from error

    def view(self, request: ClientRequest) -> None:
        """`view`: how ranks appear as threads; may change in mid-session."""
        value = _asked(request)
        if value is not None and value not in VIEWS:
            raise UsageError(f"view must be one of {', '.join(VIEWS)}, not {value!r}")
        before, self._core.view = self._core.view, value or self._core.view
        to_clients.respond(self._core, request, {"value": self._core.view})
        if self._core.view != before:
            for client in self._core.controllers():
                self._client_events.regrouped(client)

    def release(self, request: ClientRequest) -> None:
        """`release`: these ranks are detached and run on."""
        self._each(request, partial(self._lifecycle.leave, release=True))

    def drop(self, request: ClientRequest) -> None:
        """`drop`: these ranks are forgotten; the rest go on without them."""
        self._each(request, self._lifecycle.drop)

    def _each(self, request: ClientRequest, act: Callable[[Rank], None]) -> None:
        def chosen(ranks: list[Rank]) -> None:
            to_clients.respond(self._core, request)
            for rank in ranks:
                act(rank)

        self._meshes.choose(request, typed(request.arguments, RanksArguments).ranks, chosen)


def _asked(request: ClientRequest) -> str | None:
    """Return the value to put in force, None where the client only asks for it."""
    value = typed(request.arguments, ValueArguments).value
    if value is not None and request.client.role == "observer":
        raise UsageError(f"an observer may query the {request.command}, but not change it")
    return value


# The event `ranks`: what changed of which ranks, for clients that asked to hear it.
#
# Changes within a moment are one event. The other clients get standard DAP and nothing more. Of a
# row it carries what differs, and equal changes once: a stop of 512 ranks was 326 kB before.

# Reports when the debugger holds ranks stopped, because a cluster may give up on silent ones.


class Pauses(Struct, eq=False):
    """Counts the ranks that are stopped."""

    _core: SessionState
    _stopped: set[DebuggeeId] = set()

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Report the first rank that stops, and the last that continues."""
        before = bool(self._stopped)
        for rank in ranks:
            if rank.stopped:
                self._stopped.add(rank.id)
            else:
                self._stopped.discard(rank.id)
        if bool(self._stopped) != before:
            self._core.out.append(outputs.Paused(not before))


RANKS_EVENT: Final = "ranks"


class RanksEvent(Struct, eq=False):
    """The engine's part that tells what `list` would show anew."""

    _core: SessionState
    _view: View
    _changed: dict[DebuggeeId, Rank] = {}
    _timer: int | None = None

    def rows_changed(self, ranks: Sequence[Rank]) -> None:
        """Send these rows within a moment, if any client asked for them."""
        for client in self._core.clients.values():  # no generator: a rank that attaches moves often
            if RANKS_EVENT in client.events:
                self._changed.update((rank.id, rank) for rank in ranks)
                if self._timer is None:
                    self._timer = self._core.after(COALESCE_WINDOW_S, self._tell)
                return

    def _tell(self) -> None:
        self._timer = None
        changed, self._changed = sorted(self._changed.items()), {}
        ranks = [rank for id, rank in changed if id in self._core.ranks or _has_ended(rank)]
        news = (_news(rank, entry(self._core, self._view, rank)) for rank in ranks)
        body: Body = {
            "changed": _folded(each for each in news if each),
            "counts": counts_of(self._core.ranks.values()),
        }
        to_clients.send_to_listeners(self._core, RANKS_EVENT, body)


def _has_ended(worker: Rank) -> bool:
    """A worker's last news: it is forgotten at once, and stays in no list."""
    return worker.main is not None and worker.phase in (Phase.GONE, Phase.RELEASED)
