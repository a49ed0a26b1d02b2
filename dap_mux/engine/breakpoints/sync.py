"""Breakpoints of every client, remembered, sent to the ranks they select, and replayed.

One `Book` holds what each client wants, by place: a source path, or function breakpoints. A
rank is sent the union for a place at once when it is configured; ranks that come later get all
of it before they run on. The answer to a client waits for connected and connecting ranks (at
most `breakpoint_timeout`); what changes after that is told by `breakpoint` events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from dap_mux.engine.breakpoints.acks import BreakpointAcks
from dap_mux.engine.breakpoints.exception_filters import exceptions_for, states_of
from dap_mux.engine.breakpoints.merge import Wanted, adopted, merged, problem, updated, want
from dap_mux.engine.breakpoints.store import EXCEPTIONS, FUNCTIONS, Book, Place, RankIds
from dap_mux.engine.breakpoints.substitutions import values_of
from dap_mux.engine.breakpoints.union import Plan, plan
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.source_files.comparison import NOTHING_WRONG, AboutFile, Proposal
from dap_mux.engine.source_files.diagnosis import Files
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.client_translation import Edge
from dap_mux.engine.state.listeners import Listeners
from dap_mux.engine.state.phases import Phase
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import SessionState
from dap_mux.protocol.messages import plain
from dap_mux.protocol.rank_messages import BreakpointStates
from dap_mux.rank_sets.debuggees import DebuggeeId

OWN: Final = 0  # in a client's place: the session's, told to nobody
# Ranks that have the breakpoints or soon will: an answer waits for them.
EXPECTED: Final = frozenset(
    {
        Phase.CONNECTING,
        Phase.GREETING,
        Phase.ATTACHING,
        Phase.CONFIGURING,
        Phase.STARTING,
        Phase.LIVE,
    }
)
CONFIGURABLE: Final = frozenset({Phase.CONFIGURING, Phase.STARTING, Phase.LIVE})


class Breakpoints:
    """The engine's part that owns the book."""

    def __init__(self, core: SessionState, files: Files) -> None:
        self._core = core
        self._files = files
        files.changed.add(self.file_changed)
        self.touched: Listeners[[]] = Listeners()  # what `described` returns may be new
        self._book = Book()
        self._ids = 0
        self._acks = BreakpointAcks(core)
        self._rank_ids = RankIds()
        self._newest: dict[tuple[DebuggeeId, Place], int] = {}

    # What clients ask for

    def set_source(self, request: ClientRequest) -> None:
        """`setBreakpoints`."""
        arguments = plain(request.arguments)
        source, bodies = arguments["source"], arguments.get("breakpoints")
        path = source.get("path")
        if path is None:
            to_clients.refuse(self._core, request, "a breakpoint needs a source with a path")
            return
        source.pop("sourceReference", None)  # ours, or another rank's
        self._book.sources[path] = source
        if bodies is None:
            bodies = [{"line": line} for line in arguments.get("lines", ())]
        self._set(request, path, bodies)
        self._files.opened(request.client, path)

    def set_functions(self, request: ClientRequest) -> None:
        """`setFunctionBreakpoints`."""
        self._set(request, FUNCTIONS, plain(request.arguments)["breakpoints"])

    def set_exceptions(self, request: ClientRequest) -> None:
        """`setExceptionBreakpoints`: the union of what the clients chose."""
        wanted = self._book.exceptions[request.client.id] = plain(request.arguments)
        states = states_of(wanted, self._core.world())
        body: Body | None = {"breakpoints": states} if states else None
        self._apply_for(request, EXCEPTIONS, lambda: to_clients.respond(self._core, request, body))

    def _set(self, request: ClientRequest, place: Place, bodies: list[Body]) -> None:
        client = request.client
        world = self._core.world()
        known = self._book.of(place, client.id)
        wanted = [
            adopted(known, body) or want(self._next_id(), client.id, body, world) for body in bodies
        ]
        self._book.put(place, client.id, wanted)
        self._apply_for(request, place, lambda: self._answer(request, place, wanted))

    def _apply_for(self, request: ClientRequest, place: Place, then: Callable[[], None]) -> None:
        """Who has not attached changes nothing in the ranks yet."""
        if request.client.role == "controller":
            self._apply(place, then)
        else:
            then()

    def admit(self, client: Client, before: Edge | None) -> None:
        """A client has become a controller: what it has set already counts from now on.

        `before`: the edge it had when it set that; its files may be known by other paths now.
        """
        for place in self._book.places_of(client.id):
            self._apply(self._moved(client, before, place), lambda: None)
        if client.id in self._book.exceptions:
            self._apply(EXCEPTIONS, lambda: None)

    def _moved(self, client: Client, before: Edge | None, place: Place) -> Place:
        spelling = before.spelling if before else None
        sent = spelling.to_client(place) if spelling else place
        now = client.edge.path(sent) if client.edge and place != FUNCTIONS else place
        if now != place:
            self._book.move(client.id, place, now)
        return now

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids

    def _answer(self, request: ClientRequest, place: Place, wanted: list[Wanted]) -> None:
        for item in wanted:
            item.told = self._merged(item)
        to_clients.respond(self._core, request, {"breakpoints": [item.told for item in wanted]})
        if not wanted:
            self._forget_empty(place)
        self.touched.tell()

    def _forget_empty(self, place: Place) -> None:
        """Nobody wants anything there any more: nothing of it is to be kept."""
        if place != FUNCTIONS and self._book.drop_empty(place):
            for rank in self._core.ranks:
                self._newest.pop((rank, place), None)
                self._rank_ids.drop(rank, place)

    def _merged(self, wanted: Wanted) -> Body:
        about = self._about(wanted)
        return merged(wanted, self._core.world(), self._core.settings.default_group, about)

    def _about(self, wanted: Wanted) -> AboutFile:
        client, place = self._core.clients.get(wanted.client), self._book.place_of(wanted)
        if place in (None, FUNCTIONS):
            return NOTHING_WRONG
        about = self._files.about(client, place, wanted.states)
        compiled = self._core.compiled.get((place, wanted.body.get("line", 0)))
        return replace(about, sentences=(*about.sentences, compiled)) if compiled else about

    def described(self, wanted: Wanted) -> tuple[Body, str, tuple[Proposal, ...]]:
        """Return what its client is told of it, what is wrong with it, and what would help."""
        about = self._about(wanted)
        told = wanted.told or self._merged(wanted)
        wrong = problem(wanted, self._core.world(), self._core.settings.default_group, about)
        return told, wrong, about.proposals

    def forget(self, client: Client) -> None:
        """A client left: its breakpoints go, those of others stay."""
        self._files.gone(client)
        places = self._book.places_of(client.id)
        for place in places:
            del self._book.wanted[place][client.id]
        had_filters = self._book.exceptions.pop(client.id, None) is not None
        for place in places + ([EXCEPTIONS] if had_filters else []):
            self._apply(place, lambda: None)
            self._book.tidy(place)
        self.touched.tell()

    # What commands ask for

    @property
    def book(self) -> Book:
        """All that is wanted; a change of it is nothing yet before `resend`."""
        return self._book

    def new(self, client: int, body: Body) -> Wanted:
        """Read a breakpoint, with an id that no other has."""
        return want(self._next_id(), client, body, self._core.world())

    def hit(self, rank: Rank, hits: object) -> list[Wanted]:
        """Return what a rank's `hitBreakpointIds` stand for."""
        ids = hits if isinstance(hits, list) else []
        return [item for id in ids for item in self._rank_ids.find(rank.id, id)[1]]

    def tell(self, place: Place, item: Wanted, reason: str) -> None:
        """Tell its client that a command made (`new`) or took away (`removed`) this one."""
        self.touched.tell()
        client = self._core.clients.get(item.client)
        if client is None:
            return
        item.told = told = self._merged(item)
        named = told if place == FUNCTIONS else {**told, "source": self._book.sources[place]}
        body = {"reason": reason, "breakpoint": named}
        to_clients.send_event(self._core, client, "breakpoint", body)

    # What ranks are sent

    def _apply(self, place: Place, then: Callable[[], None]) -> None:
        """Send a place's breakpoints to every rank that can take them, and wait for the rest."""
        limit = self._core.settings.breakpoint_timeout
        self.resend(place, self._core.sorted_ranks(), then, limit)

    def resend(
        self, place: Place, ranks: Iterable[Rank], then: Callable[[], None], limit: float
    ) -> None:
        """Send a place's breakpoints to these ranks; wait `limit` seconds at most."""
        expected = [rank for rank in ranks if rank.phase in EXPECTED]
        self._acks.wait(place, expected, then, limit)
        for rank in expected:
            if rank.phase in CONFIGURABLE:
                self._send(rank, place)

    def configure(self, rank: Rank) -> None:
        """Send everything to a rank that has just become ready for it, and has nothing yet."""
        for place in self._book.wanted:
            self._send(rank, place)
        if self._book.exceptions:
            self._send(rank, EXCEPTIONS)

    def _send(self, rank: Rank, place: Place) -> None:
        version = self._core.number()
        self._newest[rank.id, place] = version
        if place == EXCEPTIONS:
            self._send_exceptions(rank)
            return
        planned = self._plan(rank, place)
        bodies = [slot.body for slot in planned.slots]
        arguments: Body = {"breakpoints": bodies}
        command = "setFunctionBreakpoints"
        if place != FUNCTIONS:
            command = "setBreakpoints"
            arguments["source"] = self._book.sources[place]
            arguments["lines"] = [body.get("line", 1) for body in bodies]
        to_ranks.ask_for(
            self._core,
            rank,
            command,
            arguments,
            BreakpointStates,
            lambda said, reply: self._sent(rank, place, version, planned, said, reply),
        )

    def _plan(self, rank: Rank, place: Place) -> Plan:
        by_client = self._book.wanted[place]
        items = [item for id in self._controllers(by_client) for item in by_client[id]]
        return plan(items, rank.id, self._core.world(), values_of(self._core, rank))

    def _controllers(self, clients: Iterable[int]) -> list[int]:
        known = self._core.clients
        return [
            id for id in clients if id == OWN or (id in known and known[id].role == "controller")
        ]

    def _sent(
        self,
        rank: Rank,
        place: Place,
        version: int,
        planned: Plan,
        said: BreakpointStates | None,
        reply: Reply,
    ) -> None:
        """A rank answered for a place; an answer overtaken by a newer request is not kept."""
        if self._newest.get((rank.id, place)) != version:
            return
        ids = self._rank_ids.renew(rank.id, place, stopped=rank.stop is not None)
        states = (said.breakpoints if said else None) or []
        for index, slot in enumerate(planned.slots):
            state = states[index] if index < len(states) else None
            state = state or _failure(reply)
            if isinstance(state.get("id"), int):
                ids[state["id"]] = slot.wanted
            self._keep(rank, slot.wanted, state)
        for item, reason in planned.refused:
            self._keep(rank, (item,), {"verified": False, "message": reason})
        if not self._sent_again(rank, place):
            self._acks.arrived(rank, place)
        if place != FUNCTIONS:
            self._files.taken(rank, place, [state for state in states if state])

    def _sent_again(self, rank: Rank, place: Place) -> bool:
        """Unite those that debugpy has moved onto one line, of which it keeps the last only."""
        met = self._rank_ids.met(rank.id, place)
        if met:
            self._send(rank, place)
        return met

    def _keep(self, rank: Rank, wanted: tuple[Wanted, ...], state: Body) -> None:
        for item in wanted:
            item.states[rank.id] = state
            self._tell_change(item)

    def _send_exceptions(self, rank: Rank) -> None:
        by_client = self._book.exceptions
        wanted = [by_client[id] for id in self._controllers(by_client)]
        arguments = exceptions_for(wanted, rank.rank_id, self._core.world())
        to_ranks.ask(
            self._core,
            rank,
            "setExceptionBreakpoints",
            arguments,
            lambda reply: self._acks.arrived(rank, EXCEPTIONS),
        )

    # What clients are told

    def changed(self, rank: Rank, state: Body) -> None:
        """A rank's `breakpoint` event: it verified, moved or lost one of ours."""
        place, wanted = self._rank_ids.find(rank.id, state.get("id"))
        self._keep_changed(rank, wanted, state)
        if place is not None:
            self._sent_again(rank, place)

    def _keep_changed(self, rank: Rank, wanted: tuple[Wanted, ...], state: Body) -> None:
        for item in wanted:
            item.states[rank.id] = updated(item.states.get(rank.id, {}), state)
            self._tell_change(item)

    def ids_for(self, client: Client, rank: Rank, hits: object) -> list[int]:
        """Return a client's own ids for a rank's `hitBreakpointIds`: what it has on those lines."""
        spots: dict[Place, set[object]] = {}
        for id in hits if isinstance(hits, list) else []:
            place, wanted = self._rank_ids.find(rank.id, id)
            if place is not None:
                spots.setdefault(place, set()).update(item.spot_in(rank.id) for item in wanted)
        found = (self._book.hit(client.id, rank.id, *spot) for spot in spots.items())
        return [id for ids in found for id in ids]

    def _tell_change(self, wanted: Wanted) -> None:
        self.touched.tell()
        client = self._core.clients.get(wanted.client)
        if wanted.told is None or client is None or self._book.place_of(wanted) is None:
            return
        now = self._merged(wanted)
        if now != wanted.told:
            wanted.told = now
            body: Body = {"reason": "changed", "breakpoint": now}
            to_clients.send_event(self._core, client, "breakpoint", body)

    def file_changed(self, place: Place) -> None:
        """There is news about a file: tell those who have breakpoints in it."""
        for items in self._book.wanted.get(place, {}).values():
            for item in items:
                self._tell_change(item)

    def unavailable(self, rank: Rank) -> None:
        """A rank's connection is gone: nobody waits for it, and what it said is forgotten."""
        self._rank_ids.forget(rank.id)
        self.touched.tell()
        for by_client in self._book.wanted.values():
            for items in by_client.values():
                for item in items:
                    item.states.pop(rank.id, None)
        self._acks.arrived(rank, None)


def _failure(reply: Reply) -> Body:
    return {"verified": False, "message": reply.problem or "not verified"}
