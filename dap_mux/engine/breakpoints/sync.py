"""Breakpoints of every client, stored, sent to the ranks that they select, and replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from msgspec.structs import replace

from dap_mux.engine.breakpoints.merge import (
    MODE_KEPT,
    Breakpoint,
    adopt,
    merged,
    mode_kept,
    problem,
    read_breakpoint,
    updated,
)
from dap_mux.engine.breakpoints.store import (
    EXCEPTIONS,
    FUNCTIONS,
    BreakpointAcks,
    BreakpointStore,
    Changes,
    Place,
    RankIds,
    Sending,
    Sendings,
    Taken,
)
from dap_mux.engine.breakpoints.union import ExceptionFilters, enable, states_of
from dap_mux.engine.messages import to_clients, to_ranks
from dap_mux.engine.messages.requests import SWALLOWED
from dap_mux.engine.source_files.diagnosis import NOTHING_WRONG, AboutFile, Files, Proposal
from dap_mux.engine.state.client import Client, ClientRequest
from dap_mux.engine.state.client_translation import ClientTranslation
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import Broadcast, Listeners, SessionState
from dap_mux.pure.protocol.messages import Body, plain
from dap_mux.pure.rank_sets.world import DebuggeeId

OWN: Final = 0  # in a client's place: the session's own breakpoints, which no client is told of


# One `BreakpointStore` holds each client's breakpoints by place: a source path, or the functions. A
# configured rank is sent the union for a place at once; ranks that come later get everything before
# they run on. The response to a client waits for connected and connecting ranks (at most
# `breakpoint_timeout`); later changes are told by `breakpoint` events.
class Breakpoints:
    """Owns the breakpoint store, and keeps ranks and clients in step with it."""

    def __init__(self, core: SessionState, files: Files) -> None:
        self._core = core
        self._files = files
        files.changed.add(self.file_changed)
        self.ours_chosen: Listeners[[Rank, frozenset[str]]] = Listeners()  # filters of our own
        self.touched: Listeners[[]] = Listeners()  # the result of `described` may have changed
        self.store = BreakpointStore()  # `resend` makes a change of it take effect
        self._ids = 0
        self._acks = BreakpointAcks(core)
        self._changes = Changes(core, self._tell_change)
        self._rank_ids = RankIds()
        self._newest: dict[Place, dict[DebuggeeId, Sending]] = {}
        self._replayed: dict[Place, Sendings] = {}  # to ranks that come, while these hold

    # Clients' requests

    def set_source(self, request: ClientRequest) -> None:
        """`setBreakpoints`."""
        arguments = plain(request.arguments)
        source, bodies = arguments["source"], arguments.get("breakpoints")
        path = source.get("path")
        if path is None:
            to_clients.refuse(self._core, request, "a breakpoint needs a source with a path")
            return
        source.pop("sourceReference", None)  # an id of ours, or of another rank
        self.store.sources[path] = source
        if bodies is None:
            bodies = [{"line": line} for line in arguments.get("lines", ())]
        self._set(request, path, bodies)
        self._files.opened(request.client, path)

    def set_functions(self, request: ClientRequest) -> None:
        """`setFunctionBreakpoints`."""
        self._set(request, FUNCTIONS, plain(request.arguments)["breakpoints"])

    def set_exceptions(self, request: ClientRequest) -> None:
        """`setExceptionBreakpoints`: ranks get the union of the clients' filters."""
        chosen = plain(request.arguments)
        told = self._core.settings.swallows_exceptions or any(
            rank.endpoint.traits.swallows_exceptions for rank in self._core.sorted_ranks()
        )
        self.store.choose_exceptions(request.client.id, chosen, told_of_swallowed=told)
        states = states_of(chosen, self._core.world())
        body: Body | None = {"breakpoints": states} if states else None
        self._apply_for(request, EXCEPTIONS, lambda: to_clients.respond(self._core, request, body))

    def _set(self, request: ClientRequest, place: Place, bodies: list[Body]) -> None:
        client = request.client
        known = self.store.of(place, client.id)
        breakpoints = [adopt(known, body) or self._read(known, client.id, body) for body in bodies]
        self.edited(place)
        self.store.put(place, client.id, breakpoints)
        self._apply_for(request, place, lambda: self._answer(request, place, breakpoints))

    def _read(self, known: list[Breakpoint], client: int, body: Body) -> Breakpoint:
        mode = mode_kept(known, body)
        if not mode:
            return self.new(client, body)
        item = self.new(client, {**body, "mode": mode})
        item.keeps_mode, item.hint = True, MODE_KEPT.format(mode)
        return item

    def _apply_for(self, request: ClientRequest, place: Place, then: Callable[[], None]) -> None:
        """Send it to the ranks, unless the client has not attached yet."""
        if request.client.role == "controller":
            self._apply(place, then)
        else:
            then()

    def admit(self, client: Client, before: ClientTranslation | None) -> None:
        """A client has become a controller: send the breakpoints that it has already set.

        `before`: its translation when it set them; attaching may have changed its paths.
        """
        for place in self.store.places_of(client.id):
            self._apply(self._moved(client, before, place), lambda: None)
        if client.id in self.store.exceptions:
            self._apply(EXCEPTIONS, lambda: None)

    def _moved(self, client: Client, before: ClientTranslation | None, place: Place) -> Place:
        paths = before.paths if before else None
        sent = paths.to_client(place) if paths else place
        now = client.translation.path(sent) if client.translation and place != FUNCTIONS else place
        if now != place:
            self.edited(place)
            self.store.move(client.id, place, now)
        return now

    def _answer(self, request: ClientRequest, place: Place, breakpoints: list[Breakpoint]) -> None:
        for item in breakpoints:
            item.told = self._merged(item)
        to_clients.respond(
            self._core, request, {"breakpoints": [each.told for each in breakpoints]}
        )
        if not breakpoints:
            self._forget_empty(place)
        self.touched.tell()

    def _forget_empty(self, place: Place) -> None:
        """Forget a place that has no breakpoints left."""
        if place != FUNCTIONS and self.store.drop_empty(place):
            self._newest.pop(place, None)
            self._rank_ids.drop(place)

    def _merged(self, breakpoint: Breakpoint) -> Body:
        about = self._about(breakpoint)
        return merged(breakpoint, self._core.world(), self._core.settings.default_group, about)

    def _about(self, breakpoint: Breakpoint) -> AboutFile:
        client, place = self._core.clients.get(breakpoint.client), self.store.place_of(breakpoint)
        if place in (None, FUNCTIONS):
            return NOTHING_WRONG
        about = self._files.about(client, place, breakpoint.states)
        compiled = self._core.compiled.get((place, breakpoint.body.get("line", 0)))
        return replace(about, sentences=(*about.sentences, compiled)) if compiled else about

    def described(self, breakpoint: Breakpoint) -> tuple[Body, str, tuple[Proposal, ...]]:
        """Return the body its client was sent, the problem, and mappings that would help."""
        about = self._about(breakpoint)
        told = breakpoint.told or self._merged(breakpoint)
        wrong = problem(breakpoint, self._core.world(), self._core.settings.default_group, about)
        return told, wrong, about.proposals

    def forget(self, client: Client) -> None:
        """Remove the breakpoints of a client that has left; those of others stay."""
        self._files.gone(client)
        places = self.store.places_of(client.id)
        for place in places:
            del self.store.by_place[place][client.id]
        filtered = self.store.forget_exceptions(client.id)
        if not self._core.attached():
            filtered |= self._core.settings != self._core.own_settings  # by the first one's attach
            self._core.settings = self._core.own_settings
        for place in places + ([EXCEPTIONS] if filtered else []):
            self._apply(place, lambda: None)
            self.store.tidy(place)
        self.touched.tell()

    # Changes by commands

    def new(self, client: int, body: Body) -> Breakpoint:
        """Read a breakpoint and give it a new id."""
        self._ids += 1
        return read_breakpoint(self._ids, client, body, self._core.world())

    def hit(self, rank: Rank, hits: object) -> list[Breakpoint]:
        """Return the breakpoints that a rank's `hitBreakpointIds` stand for."""
        ids = hits if isinstance(hits, list) else []
        return [item for id in ids for item in self._rank_ids.find(rank.id, id)[1]]

    def at(self, rank: Rank, place: Place, line: int) -> list[Breakpoint]:
        """Return the breakpoints that a rank has on a line."""
        by_client = self.store.by_place.get(place, {})
        items = [item for items in by_client.values() for item in items]
        return [
            item
            for item in items
            if item.verified_in(rank.id) and item.spot_in(rank.id) == (line, None)
        ]

    def tell(self, place: Place, item: Breakpoint, reason: str) -> None:
        """Tell its client that a command has set (`new`) or removed (`removed`) it."""
        self.touched.tell()
        client = self._core.clients.get(item.client)
        if client is None:
            return
        item.told = told = self._merged(item)
        named = told if place == FUNCTIONS else {**told, "source": self.store.sources[place]}
        body = {"reason": reason, "breakpoint": named}
        to_clients.send_event(self._core, client, "breakpoint", body)

    # Sending to ranks

    def _apply(self, place: Place, then: Callable[[], None]) -> None:
        """Send a place's breakpoints to every rank; call `then` when they have answered."""
        limit = self._core.settings.breakpoint_timeout
        self.resend(place, self._core.sorted_ranks(), then, limit)

    def resend(
        self, place: Place, ranks: Iterable[Rank], then: Callable[[], None], limit: float
    ) -> None:
        """Send a place's breakpoints to these ranks; `then` waits `limit` seconds at most."""
        expected = [rank for rank in ranks if rank.phase.configurable_soon]
        self._acks.wait(place, expected, then, limit)
        ready = [rank for rank in expected if rank.phase.configurable]
        if place == EXCEPTIONS:
            self._send_exceptions([rank for rank in ready if rank.phase.live])
            for rank in ready:
                if not rank.phase.live:
                    self._send_exceptions_once_patched(rank)
        elif ready:  # else `then` has been called, and may have forgotten the place
            self._send(ready, self._sendings(place))

    def reselected(self, place: Place) -> None:
        """Rank sets select others now: send a place's breakpoints to the ranks where they differ.

        To no other: debugpy removes those of a file before it sets the new ones, and a rank that
        runs may pass a line meanwhile.
        """
        sendings, newest = self._sendings(place), self._newest.get(place, {})
        ready = [rank for rank in self._core.sorted_ranks() if rank.phase.configurable]
        changed = [rank for rank in ready if not sendings.of(rank).sends_as(newest.get(rank.id))]
        self._send(changed, sendings)

    def configure(self, rank: Rank) -> None:
        """Send everything to a rank that has just become ready for breakpoints."""
        world = self._core.world()
        for place in self.store.by_place:
            known = self._replayed.get(place)
            clients = self._controllers(self.store.by_place[place])
            if known is None or not known.holds_in(world, clients):
                known = self._replayed[place] = self._sendings(place)
            self._send([rank], known)
        self._send_exceptions_once_patched(rank)

    def edited(self, place: Place) -> None:
        """A place's breakpoints, or their ranks, have changed."""
        self._replayed.pop(place, None)

    def _sendings(self, place: Place) -> Sendings:
        self.edited(place)
        by_client = self.store.by_place[place]
        wanted = {id: by_client[id] for id in self._controllers(by_client)}
        return Sendings(self._core, place, self.store.sources.get(place, {}), wanted, self._sent)

    def _send(self, ranks: Iterable[Rank], sendings: Sendings) -> None:
        newest = self._newest.setdefault(sendings.place, {})
        for rank in ranks:
            newest[rank.id] = sending = sendings.of(rank)
            if sending.waits:
                enable(self._core, rank, partial(self._send_if_newest, sending, rank))
            else:
                sending.send(rank)

    def _send_if_newest(self, sending: Sending, rank: Rank) -> None:
        if self._newest.get(sending.place, {}).get(rank.id) is sending:
            sending.send(rank)

    def _controllers(self, clients: Iterable[int]) -> list[int]:
        known = {OWN, *(client.id for client in self._core.attached())}
        return [id for id in clients if id in known]

    def _sent(self, sending: Sending, rank: Rank, taken: Taken) -> None:
        """Keep a rank's answer for a place, unless a newer request has overtaken it."""
        place = sending.place
        if self._newest.get(place, {}).get(rank.id) is not sending:
            return
        stands = rank.stop is not None or rank.at_barrier is not None
        self._rank_ids.replace(rank.id, place, taken.ids, stopped=stands)
        for item, state in taken.states:
            before, item.states[rank.id] = item.states.get(rank.id), state
            if item.told is not None and before != state:
                self._changes.note(item)
        self.touched.tell()
        if self._rank_ids.met(
            rank.id, place
        ):  # send again, united, what debugpy has moved onto one line: it keeps the last
            self._send([rank], self._sendings(place))
        else:
            self._acks.arrived(rank, place)
        if place != FUNCTIONS:
            self._files.taken(rank, place, told=taken.told, missing=taken.has_no_file)

    def _send_exceptions_once_patched(self, rank: Rank) -> None:
        """Until then an exception within what is evaluated would stop the rank, unanswered."""
        link = rank.link

        def send() -> None:
            if rank.link != link:
                return
            if self.store.exceptions:
                self._send_exceptions([rank])
                return
            self.ours_chosen.tell(rank, frozenset())
            if rank.endpoint.traits.swallows_exceptions:
                to_ranks.ask(self._core, rank, "setExceptionBreakpoints", SWALLOWED, lambda _: None)

        to_ranks.when_answered(self._core, rank, "evaluate", send)

    def _send_exceptions(self, ranks: Iterable[Rank]) -> None:
        clients, world = self._controllers(self.store.exceptions), self._core.world()
        filters = {
            swallows: ExceptionFilters(self.store.chosen(clients, swallows=swallows), world)
            for swallows in (False, True)
        }
        command = "setExceptionBreakpoints"
        requests = to_ranks.Round(
            self._core, command, lambda rank, _: self._acks.arrived(rank, EXCEPTIONS)
        )
        for rank in ranks:
            chosen = filters[rank.endpoint.traits.swallows_exceptions]
            requests.ask(rank, Broadcast(command, chosen.of(rank.rank_id)))
            self.ours_chosen.tell(rank, chosen.ours(rank.rank_id))

    # Telling clients

    def changed(self, rank: Rank, state: Body) -> None:
        """Handle a rank's `breakpoint` event: it has verified, moved or lost one of ours."""
        place, breakpoints = self._rank_ids.find(rank.id, state.get("id"))
        if place is not None and state.get("verified"):
            before = [item.states.get(rank.id, {}) for item in breakpoints]
            self._files.verified(rank, place, before)
        for item in breakpoints:
            item.states[rank.id] = updated(item.states.get(rank.id, {}), state)
            self._changes.note(item)
        self.touched.tell()
        if place is not None and self._rank_ids.met(rank.id, place):
            self._send([rank], self._sendings(place))

    def ids_for(self, client: Client, rank: Rank, hits: object) -> list[int]:
        """Return the ids of a client's breakpoints on the lines of a rank's hit ids."""
        spots: dict[Place, set[object]] = {}
        for id in hits if isinstance(hits, list) else []:
            place, breakpoints = self._rank_ids.find(rank.id, id)
            if place is not None:
                spots.setdefault(place, set()).update(item.spot_in(rank.id) for item in breakpoints)
        found = (self.store.hit(client.id, rank.id, *spot) for spot in spots.items())
        return [id for ids in found for id in ids]

    def _tell_change(self, breakpoint: Breakpoint) -> None:
        client = self._core.clients.get(breakpoint.client)
        if breakpoint.told is None or client is None or self.store.place_of(breakpoint) is None:
            return
        now = self._merged(breakpoint)
        if now != breakpoint.told:
            breakpoint.told = now
            body: Body = {"reason": "changed", "breakpoint": now}
            to_clients.send_event(self._core, client, "breakpoint", body)

    def file_changed(self, place: Place) -> None:
        """There is news about a file: tell the clients that have breakpoints in it."""
        for items in self.store.by_place.get(place, {}).values():
            for item in items:
                self._changes.note(item)
        self.touched.tell()

    def unavailable(self, rank: Rank) -> None:
        """A rank's connection is gone: forget its answers, and wait for it no longer."""
        self._rank_ids.forget(rank.id)
        self.touched.tell()
        for by_client in self.store.by_place.values():
            for items in by_client.values():
                for item in items:
                    item.states.pop(rank.id, None)
        self._acks.arrived(rank, None)
