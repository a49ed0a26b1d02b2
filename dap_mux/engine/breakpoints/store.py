"""What each client wants at each place, and what ranks' own breakpoint ids stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from dap_mux.engine.breakpoints.merge import Wanted
from dap_mux.engine.state.bodies import Body
from dap_mux.engine.state.bounded import Recent
from dap_mux.rank_sets.debuggees import DebuggeeId

Place: TypeAlias = str  # a client path, or one of:
FUNCTIONS: Final = "\0functions"
EXCEPTIONS: Final = "\0exceptions"
MAX_BEFORE: Final = 4096  # ids of a rank's breakpoints that were replaced while it stands still
Ids: TypeAlias = dict[int, tuple[Wanted, ...]]


@dataclass
class Book:
    """What each client wants at each place; exceptions hold the client's arguments instead."""

    wanted: dict[Place, dict[int, list[Wanted]]] = field(default_factory=dict)
    sources: dict[Place, Body] = field(default_factory=dict)
    exceptions: dict[int, Body] = field(default_factory=dict)

    def put(self, place: Place, client: int, wanted: list[Wanted]) -> None:
        """Replace what a client wants at a place; what it wanted before keeps its age.

        What a command has put there stays, unless the client's own list speaks of it.
        """
        known = self.of(place, client)
        for older in known:
            for item in wanted:
                if item.succeeds(older):
                    item.replaces(older)
        kept = [one for one in known if one.by_command and not one.adopted]
        self.wanted.setdefault(place, {})[client] = wanted + kept

    def of(self, place: Place, client: int) -> list[Wanted]:
        """Return what a client wants at a place."""
        return self.wanted.get(place, {}).get(client, [])

    def add(self, place: Place, item: Wanted) -> None:
        """A command puts down one more."""
        self.wanted.setdefault(place, {}).setdefault(item.client, []).append(item)
        self.sources.setdefault(place, {"path": place})

    def items(self) -> list[tuple[Place, Wanted]]:
        """Return all there is, by id."""
        found = [
            (place, item)
            for place, by_client in self.wanted.items()
            for items in by_client.values()
            for item in items
        ]
        return sorted(found, key=lambda each: each[1].id)

    def places_of(self, client: int) -> list[Place]:
        """Return where a client has had a say."""
        return [place for place, by_client in self.wanted.items() if client in by_client]

    def move(self, client: int, place: Place, to: Place) -> None:
        """A client's file turns out to be known by another path."""
        self.wanted.setdefault(to, {})[client] = self.wanted[place].pop(client)
        self.sources[to] = {**self.sources[place], "path": to}
        self.tidy(place)

    def tidy(self, place: Place) -> None:
        """Forget a place where nobody has a say any more."""
        if not self.wanted.get(place, True):
            del self.wanted[place]
            self.sources.pop(place, None)

    def drop_empty(self, place: Place) -> bool:
        """Forget a place where nobody wants anything; False where somebody does."""
        if any(self.wanted.get(place, {}).values()):
            return False
        self.wanted.pop(place, None)
        self.sources.pop(place, None)
        return True

    def place_of(self, wanted: Wanted) -> Place | None:
        """Return where it is wanted, None where it is not any more."""
        places = self.wanted.items()
        return next((place for place, by in places if wanted in by.get(wanted.client, ())), None)

    def hit(self, client: int, rank: DebuggeeId, place: Place, hits: set[object]) -> Iterator[int]:
        """Yield the ids of what a client has, in a rank, on the lines that were hit there."""
        for item in self.wanted.get(place, {}).get(client, ()):
            if item.spot_in(rank) in hits and item.verified_in(rank):
                yield item.id


class RankIds:
    """What the ids stand for that ranks give to breakpoints: anew with each request."""

    def __init__(self) -> None:
        self._now: dict[DebuggeeId, dict[Place, Ids]] = {}
        self._before: dict[DebuggeeId, Recent[tuple[Place, int], tuple[Wanted, ...]]] = {}

    def renew(self, rank: DebuggeeId, place: Place, *, stopped: bool) -> Ids:
        """Return the new ids to fill; a stop at one of the old goes on being told to joiners."""
        old = self._now.get(rank, {}).pop(place, {})
        if stopped:
            before = self._before.setdefault(rank, Recent(MAX_BEFORE))
            for id, wanted in old.items():
                before[place, id] = wanted
        else:
            self._before.pop(rank, None)
        return self._now.setdefault(rank, {}).setdefault(place, {})

    def find(self, rank: DebuggeeId, id: object) -> tuple[Place | None, tuple[Wanted, ...]]:
        """Return what a rank's own id stands for, and where."""
        if not isinstance(id, int):
            return None, ()
        for place, ids in self._now.get(rank, {}).items():
            if id in ids:
                return place, ids[id]
        before = self._before.get(rank) or Recent(0)
        found = ((place, item) for (place, known), item in before.items() if known == id)
        return next(found, (None, ()))

    def met(self, rank: DebuggeeId, place: Place) -> bool:
        """Whether debugpy has moved two onto one line, of which it keeps the last only."""
        ids = self._now.get(rank, {}).get(place, {})
        spots = [wanted[0].spot_in(rank) for wanted in ids.values()]
        return len(set(spots)) < len(spots)

    def drop(self, rank: DebuggeeId, place: Place) -> None:
        """A rank has nothing there any more."""
        self._now.get(rank, {}).pop(place, None)

    def forget(self, rank: DebuggeeId) -> None:
        """The rank's connection is gone, and its ids with it."""
        self._now.pop(rank, None)
        self._before.pop(rank, None)
