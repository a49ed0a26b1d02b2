"""Breakpoints that commands set, change and remove for some ranks, in the common store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from dap_mux.engine.breakpoints.merge import Breakpoint, Temporary, check_sets
from dap_mux.engine.breakpoints.store import FUNCTIONS, Place
from dap_mux.engine.breakpoints.sync import OWN, Breakpoints
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets import RankId, fold

OnTaken: TypeAlias = Callable[[], None]


def _nothing() -> None:
    pass


# These breakpoints belong to the client that gave the command, like its other ones, but only to the
# ranks that it named. A change for some of a breakpoint's ranks splits it in two. Temporary ones
# are removed when they have done their work.
class BreakpointEdits(Struct, eq=False):
    """Changes the breakpoint store for commands."""

    _core: SessionState
    _breakpoints: Breakpoints
    _temporary: list[Breakpoint] = []

    def _is_there(self, item: Breakpoint) -> bool:
        return self._breakpoints.store.place_of(item) is not None

    def items(self) -> list[tuple[Place, Breakpoint]]:
        """Return every client's breakpoints, by id, without the session's own."""
        return [
            (place, item) for place, item in self._breakpoints.store.items() if item.client != OWN
        ]

    def ranks_of(self, item: Breakpoint) -> set[RankId]:
        """Return the ranks that have it, including those where it is disabled."""
        disabled, item.disabled = item.disabled, set()
        chosen = item.selection(self._core.world())
        item.disabled = disabled
        return chosen

    # Setting and removing

    def make(
        self, client: int, place: Place, body: Body, ranks: Iterable[Rank], kind: Temporary = ""
    ) -> Breakpoint:
        """Add one for these ranks to the store; `send` sends it."""
        item = self._add(place, client, body, {rank.rank_id for rank in ranks})
        self._set_kind(item, kind)
        return item

    def _set_kind(self, item: Breakpoint, kind: Temporary) -> None:
        item.temporary = kind
        if kind:
            self._temporary.append(item)

    def _add(self, place: Place, client: int, body: Body, ranks: set[RankId]) -> Breakpoint:
        item = self._breakpoints.new(client, body)
        item.only, item.by_command = frozenset(ranks), True
        self._breakpoints.store.add(place, item)
        self._breakpoints.edited(place)
        return item

    def split(self, place: Place, item: Breakpoint, ranks: set[RankId]) -> Breakpoint:
        """Return the part of it that belongs to these ranks: itself, or a new one split off."""
        if self.ranks_of(item) <= ranks:
            return item
        part = self._add(place, item.client, dict(item.body), ranks)
        part.sets, part.clean = item.sets, dict(item.clean)
        part.disabled = item.disabled & ranks
        self._set_kind(part, item.temporary)
        item.off |= ranks
        self._breakpoints.edited(place)
        return part

    def cut(self, place: Place, item: Breakpoint, ranks: set[RankId]) -> None:
        """Remove it from these ranks; if no rank is left, remove it and tell its client."""
        item.off |= ranks
        self._breakpoints.edited(place)
        if not self.ranks_of(item):
            self._breakpoints.store.of(place, item.client).remove(item)
            self._breakpoints.tell(place, item, "removed")

    def send(self, place: Place, ranks: Iterable[Rank], then: OnTaken, limit: float) -> None:
        """Send a place's breakpoints to these ranks and their workers only."""
        ids = {rank.rank_id for rank in ranks}
        family = [one for one in self._core.sorted_ranks() if one.rank_id in ids]
        self._breakpoints.resend(place, family, then, limit)

    def reselect(self) -> None:
        """A named set or a mesh has changed: send the breakpoints again that may use it."""
        world = self._core.world()
        items = self._breakpoints.store.items()
        for _place, item in items:
            check_sets(item, world)
        places = [place for place, item in items if item.sets or item.differ]
        for place in dict.fromkeys(places):
            self._breakpoints.reselected(place)

    # Temporary ones

    def stopped(self, rank: Rank, hits: list[int]) -> None:
        """A rank has stopped: remove its temporary breakpoints that have done their work."""
        self._temporary = [item for item in self._temporary if self._is_there(item)]
        if not self._temporary:
            return
        hit = self._breakpoints.hit(rank, hits)
        over = [
            (place, item)
            for place, item in self._breakpoints.store.items()
            if item in hit or (item.temporary == "stop" and rank.main is None)
            if item.temporary
            if rank.rank_id in self.ranks_of(item)
        ]
        for place, item in over:
            self.cut(place, item, {rank.rank_id})
        limit = self._core.settings.breakpoint_timeout
        for place in dict.fromkeys(place for place, _ in over):
            self.send(place, [rank], _nothing, limit)

    def lost(self, rank: Rank) -> None:
        """A rank's connection is gone: drop its breakpoints that were for one stop only."""
        for place, item in self._breakpoints.store.items() if self._temporary else ():
            if item.temporary == "stop" and not rank.main and rank.rank_id in self.ranks_of(item):
                self.cut(place, item, {rank.rank_id})

    # Telling

    def made(self, place: Place, item: Breakpoint) -> None:
        """Tell its client by DAP's event, the others by a line of output: it is not theirs."""
        self._breakpoints.tell(place, item, "new")
        self.mention(item, f"set {where(place, item)}")

    def mention(self, item: Breakpoint, what: str) -> None:
        """Print a line for every other client that says what was done with it."""
        ranks = fold(self.ranks_of(item), self._core.default_group())
        on = f" on ranks {ranks}" if ranks else ""
        for client in self._core.controllers():
            if client.id != item.client:
                to_clients.say_to(self._core, client, f"another client {what}{on}")


def where(place: Place, item: Breakpoint) -> str:
    """Return `breakpoint 7 at /job/train.py:41`."""
    spot = f"function {item.body['name']}" if place == FUNCTIONS else f"{place}:{_line(item)}"
    return f"breakpoint {item.id} at {spot}"


def _line(item: Breakpoint) -> object:
    told = item.told or item.body
    return told.get("line", item.body.get("line"))
