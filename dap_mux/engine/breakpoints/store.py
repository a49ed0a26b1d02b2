"""Each client's breakpoints at each place, and the meaning of the ranks' breakpoint ids."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct, field

from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.messages.requests import DEFAULT_EXCEPTIONS, SWALLOWED
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.rank_sets.world import DebuggeeId

Place: TypeAlias = str  # a client path, or one of:
FUNCTIONS: Final = "\0functions"
EXCEPTIONS: Final = "\0exceptions"
MAX_REPLACED_IDS: Final = 4096  # of a rank's breakpoints replaced while it is stopped
Ids: TypeAlias = dict[int, tuple[Breakpoint, ...]]


class BreakpointStore(Struct):
    """Each client's breakpoints at each place; for exceptions, the arguments that it sent."""

    by_place: dict[Place, dict[int, list[Breakpoint]]] = field(default_factory=dict)
    sources: dict[Place, Body] = field(default_factory=dict)
    exceptions: dict[int, Body] = field(default_factory=dict)
    undecided: set[int] = field(default_factory=set)
    """Clients that took the default exception filters as they were told before any rank was known
    whose framework swallows exceptions. An editor reads the defaults once."""

    def put(self, place: Place, client: int, breakpoints: list[Breakpoint]) -> None:
        """Replace a client's breakpoints at a place; one that was there before keeps its age.

        Breakpoints that a command has set stay, unless the client's own list contains them.
        """
        known = self.of(place, client)
        for older in known:
            for item in breakpoints:
                if item.succeeds(older):
                    item.replaces(older)
        kept = [one for one in known if one.by_command and not one.adopted]
        self.by_place.setdefault(place, {})[client] = breakpoints + kept

    def choose_exceptions(self, client: int, body: Body, *, told_of_swallowed: bool) -> None:
        """Keep a client's exception filters."""
        self.exceptions[client] = body
        is_default = body == DEFAULT_EXCEPTIONS and not told_of_swallowed
        (self.undecided.add if is_default else self.undecided.discard)(client)

    def chosen(self, clients: Iterable[int], *, swallows: bool) -> list[Body]:
        """Return the filters of these clients for ranks whose framework swallows exceptions."""
        undecided = self.undecided if swallows else ()
        return [SWALLOWED if id in undecided else self.exceptions[id] for id in clients]

    def forget_exceptions(self, client: int) -> bool:
        """Whether the client, which has left, had any filters."""
        self.undecided.discard(client)
        return self.exceptions.pop(client, None) is not None

    def of(self, place: Place, client: int) -> list[Breakpoint]:
        """Return a client's breakpoints at a place."""
        return self.by_place.get(place, {}).get(client, [])

    def add(self, place: Place, item: Breakpoint) -> None:
        """Add a breakpoint that a command sets."""
        self.by_place.setdefault(place, {}).setdefault(item.client, []).append(item)
        self.sources.setdefault(place, {"path": place})

    def items(self) -> list[tuple[Place, Breakpoint]]:
        """Return all breakpoints, by id."""
        found = [
            (place, item)
            for place, by_client in self.by_place.items()
            for items in by_client.values()
            for item in items
        ]
        return sorted(found, key=lambda each: each[1].id)

    def places_of(self, client: int) -> list[Place]:
        """Return the places for which a client has sent a list, even an empty one."""
        return [place for place, by_client in self.by_place.items() if client in by_client]

    def move(self, client: int, place: Place, to: Place) -> None:
        """Move a client's breakpoints: the session knows their file by another path."""
        self.by_place.setdefault(to, {})[client] = self.by_place[place].pop(client)
        self.sources[to] = {**self.sources[place], "path": to}
        self.tidy(place)

    def tidy(self, place: Place) -> None:
        """Forget a place that has no client left."""
        if not self.by_place.get(place, True):
            del self.by_place[place]
            self.sources.pop(place, None)

    def drop_empty(self, place: Place) -> bool:
        """Forget a place without breakpoints; return False where there still are some."""
        if any(self.by_place.get(place, {}).values()):
            return False
        self.by_place.pop(place, None)
        self.sources.pop(place, None)
        return True

    def place_of(self, breakpoint: Breakpoint) -> Place | None:
        """Return the place of a breakpoint, None if it has been removed."""
        places = self.by_place.items()
        client = breakpoint.client
        return next((place for place, by in places if breakpoint in by.get(client, ())), None)

    def hit(self, client: int, rank: DebuggeeId, place: Place, hits: set[object]) -> Iterator[int]:
        """Yield the ids of a client's breakpoints on the lines that were hit in a rank."""
        for item in self.by_place.get(place, {}).get(client, ()):
            if item.spot_in(rank) in hits and item.verified_in(rank):
                yield item.id


class RankIds:
    """Maps the ids that ranks give to breakpoints, new with each request, to breakpoints.

    Ranks that have given the same ids share one map of them.
    """

    def __init__(self) -> None:
        self._now: dict[Place, dict[DebuggeeId, Ids]] = {}
        self._before: dict[DebuggeeId, deque[tuple[Place, Ids]]] = {}

    def replace(self, rank: DebuggeeId, place: Place, ids: Ids, *, stopped: bool) -> None:
        """Set a rank's ids at a place.

        The old ones of a stopped rank are kept: clients that attach later are told of its stop.
        """
        of_place = self._now.setdefault(place, {})
        old, of_place[rank] = of_place.get(rank), ids
        if not stopped:
            self._before.pop(rank, None)
        elif old:
            before = self._before.setdefault(rank, deque())
            before.append((place, old))
            while sum(len(each) for _, each in before) > MAX_REPLACED_IDS:
                before.popleft()

    def find(self, rank: DebuggeeId, id: object) -> tuple[Place | None, tuple[Breakpoint, ...]]:
        """Return the place and the breakpoints that a rank's own id stands for."""
        if not isinstance(id, int):
            return None, ()
        for place, of_place in self._now.items():
            if id in (ids := of_place.get(rank, {})):
                return place, ids[id]
        before = self._before.get(rank, ())
        return next(((place, ids[id]) for place, ids in before if id in ids), (None, ()))

    def met(self, rank: DebuggeeId, place: Place) -> bool:
        """Whether debugpy has moved two onto one line; it keeps only the last of them."""
        ids = self._now.get(place, {}).get(rank, {})
        spots = [breakpoints[0].spot_in(rank) for breakpoints in ids.values()]
        return len(set(spots)) < len(spots)

    def drop(self, place: Place) -> None:
        """Forget the ids at a place that has no breakpoints left."""
        self._now.pop(place, None)

    def forget(self, rank: DebuggeeId) -> None:
        """Forget the ids of a rank whose connection is gone."""
        for of_place in self._now.values():
            of_place.pop(rank, None)
        self._before.pop(rank, None)
