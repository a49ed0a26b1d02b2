"""Breakpoints that commands make, change and take away, rank by rank, in the one book of all.

They are their client's like any other, but belong to the ranks that the command named. A change
for some of a breakpoint's ranks splits it in two. Temporary ones end by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from dap_mux.engine.breakpoints.merge import Temporary, Wanted
from dap_mux.engine.breakpoints.store import FUNCTIONS, Place
from dap_mux.engine.breakpoints.sync import OWN, Breakpoints
from dap_mux.engine.messages import to_clients
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.client import Client
from dap_mux.engine.state.rank import Rank
from dap_mux.engine.state.session import SessionState
from dap_mux.rank_sets import RankId, fold

OnTaken: TypeAlias = Callable[[], None]


def _nothing() -> None:
    pass


class BreakpointEdits:
    """The engine's part that changes the book for commands."""

    def __init__(self, core: SessionState, breakpoints: Breakpoints) -> None:
        self._core = core
        self._breakpoints = breakpoints

    def items(self) -> list[tuple[Place, Wanted]]:
        """Return every client's breakpoints, by id; the session's own left out."""
        return [
            (place, item) for place, item in self._breakpoints.book.items() if item.client != OWN
        ]

    def ranks_of(self, item: Wanted) -> set[RankId]:
        """Return the ranks that have it, disabled ones too."""
        disabled, item.disabled = item.disabled, set()
        chosen = item.selection(self._core.world())
        item.disabled = disabled
        return chosen

    # Making and taking away

    def make(
        self, client: int, place: Place, body: Body, ranks: Iterable[Rank], kind: Temporary = ""
    ) -> Wanted:
        """Put one down for these ranks; `send` makes it true."""
        item = self._add(place, client, body, {rank.rank_id for rank in ranks})
        item.temporary = kind
        return item

    def _add(self, place: Place, client: int, body: Body, ranks: set[RankId]) -> Wanted:
        item = self._breakpoints.new(client, body)
        item.only, item.by_command = frozenset(ranks), True
        self._breakpoints.book.add(place, item)
        return item

    def split(self, place: Place, item: Wanted, ranks: set[RankId]) -> Wanted:
        """Return the part of it that belongs to these ranks: all of it, or a new one."""
        if self.ranks_of(item) <= ranks:
            return item
        part = self._add(place, item.client, dict(item.body), ranks)
        part.sets, part.clean = item.sets, dict(item.clean)
        part.disabled, part.temporary = item.disabled & ranks, item.temporary
        item.off |= ranks
        return part

    def cut(self, place: Place, item: Wanted, ranks: set[RankId]) -> None:
        """Take it from these ranks; without any left it is gone, and its client is told."""
        item.off |= ranks
        if not self.ranks_of(item):
            self._breakpoints.book.of(place, item.client).remove(item)
            self._breakpoints.tell(place, item, "removed")

    def send(self, place: Place, ranks: Iterable[Rank], then: OnTaken, limit: float) -> None:
        """Tell these ranks with their workers, and nobody else, what is wanted now."""
        ids = {rank.rank_id for rank in ranks}
        family = [one for one in self._core.sorted_ranks() if one.rank_id in ids]
        self._breakpoints.resend(place, family, then, limit)

    def reselect(self) -> None:
        """A name means other ranks now: so may breakpoints that speak of it."""
        limit = self._core.settings.breakpoint_timeout
        places = [place for place, item in self._breakpoints.book.items() if item.sets]
        for place in dict.fromkeys(places):
            self._breakpoints.resend(place, self._core.sorted_ranks(), _nothing, limit)

    # Temporary ones

    def stopped(self, rank: Rank, body: Body) -> None:
        """A rank has stopped: what was temporary there and has done its work is taken away."""
        hit = self._breakpoints.hit(rank, body.get("hitBreakpointIds"))
        over = [
            (place, item)
            for place, item in self._breakpoints.book.items()
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
        """A rank's connection is gone: it comes back, if it does, without what was for one stop."""
        for place, item in list(self._breakpoints.book.items()):
            if item.temporary == "stop" and not rank.main and rank.rank_id in self.ranks_of(item):
                self.cut(place, item, {rank.rank_id})

    # Telling

    def made(self, place: Place, item: Wanted) -> None:
        """Its client is told by DAP's event; the others read a line, for it is not theirs."""
        self._breakpoints.tell(place, item, "new")
        self.mention(item, f"set {where(place, item)}")

    def mention(self, item: Wanted, what: str) -> None:
        """Let every other client read what has become of it."""
        ranks = fold(self.ranks_of(item), self._core.default_group())
        on = f" on ranks {ranks}" if ranks else ""
        text = f"dap-mux: another client {what}{on}\n"
        for client in self._core.controllers():
            if client.id != item.client:
                output: Body = {"category": "console", "output": text}
                to_clients.send_event(self._core, client, "output", output)


def where(place: Place, item: Wanted) -> str:
    """Return `breakpoint 7 at /job/train.py:41`."""
    spot = f"function {item.body['name']}" if place == FUNCTIONS else f"{place}:{_line(item)}"
    return f"breakpoint {item.id} at {spot}"


def _line(item: Wanted) -> object:
    told = item.told or item.body
    return told.get("line", item.body.get("line"))


def belongs(item: Wanted, client: Client) -> bool:
    """Whether it is this client's to change."""
    return item.client == client.id
