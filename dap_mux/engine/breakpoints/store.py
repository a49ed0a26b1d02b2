"""Each client's breakpoints at each place: kept, sent to ranks, and the meaning of ranks' ids."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct, field

from dap_mux.engine.breakpoints.merge import Breakpoint
from dap_mux.engine.breakpoints.union import Plan, Plans, waits
from dap_mux.engine.messages import to_ranks
from dap_mux.engine.messages.requests import DEFAULT_EXCEPTIONS, SWALLOWED
from dap_mux.engine.messages.to_ranks import Join
from dap_mux.engine.source_files.diagnosis import NO_FILE
from dap_mux.engine.state.rank import Rank, Reply
from dap_mux.engine.state.session import Broadcast, SessionState
from dap_mux.engine.state.threads import values_of
from dap_mux.pure.errors import PeerFault
from dap_mux.pure.protocol.messages import Body
from dap_mux.pure.protocol.rank_messages import BreakpointStates, read
from dap_mux.pure.rank_sets import World
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


# One plan on its way to the ranks that share it, and what they answer.
#
# It is encoded once, and equal answers are read once: a thousand ranks of one program say the same.

# `breakpoint` events: where ranks are many, what changes within a moment is told together.
#
# A client sees one breakpoint, merged from its states in all ranks. Merging again at each answer
# would make every one of a thousand ranks look at all the others.

MANY_RANKS: Final = 64  # above this many
COALESCE_WINDOW_S: Final = 0.05


class Changes(Struct, eq=False):
    """Breakpoints whose state has changed in some rank; `tell` says so to their clients."""

    _core: SessionState
    _tell: Callable[[Breakpoint], None]
    _changed: dict[Breakpoint, None] = {}
    _timer: int | None = None

    def note(self, item: Breakpoint) -> None:
        """Tell it at once where ranks are few, else with all that changes within a moment."""
        if len(self._core.mains) <= MANY_RANKS:
            self._tell(item)
            return
        self._changed[item] = None
        if self._timer is None:
            self._timer = self._core.after(COALESCE_WINDOW_S, self._window_over)

    def _window_over(self) -> None:
        self._timer = None
        changed, self._changed = self._changed, {}
        for item in changed:
            self._tell(item)


# Responses that wait until ranks have acknowledged a place's breakpoints.


class BreakpointAcks(Struct, eq=False):
    """Tracks which ranks still have to acknowledge the breakpoints of which place."""

    _core: SessionState
    _joins: list[tuple[Place, Join[DebuggeeId]]] = []

    def wait(
        self, place: Place, ranks: Iterable[Rank], then: Callable[[], None], limit: float
    ) -> None:
        """Call `then` once all these ranks have acknowledged, after `limit` seconds at most."""
        self._forget_ended()
        join = Join(self._core, (rank.id for rank in ranks), lambda missing: then(), limit)
        self._joins.append((place, join))

    def arrived(self, rank: Rank, place: Place | None) -> None:
        """A rank has acknowledged this place; None: all places, because it is gone."""
        if not self._joins:
            return
        for awaited, join in list(self._joins):
            if place in (awaited, None):
                join.arrive(rank.id)
        self._forget_ended()

    def _forget_ended(self) -> None:
        self._joins = [(place, join) for place, join in self._joins if not join.over]


MAX_ANSWERS: Final = 64  # that differ, and are kept to be recognised


class Taken(Struct, frozen=True, eq=False):
    """A rank's answer to its plan. Other ranks share it, so do not change it.

    `ids`: its own, of the breakpoints that they stand for; `told`: it has said anything of them,
    and perhaps that it has no such file.
    """

    ids: Ids
    states: tuple[tuple[Breakpoint, Body], ...]
    told: bool
    has_no_file: bool


OnPlanTaken: TypeAlias = "Callable[[Sending, Rank, Taken], None]"


class Sending:
    """The breakpoints of one place, sent to the ranks that have the same plan."""

    def __init__(
        self, core: SessionState, place: Place, source: Body, planned: Plan, then: OnPlanTaken
    ) -> None:
        self.place = place
        self.planned = planned
        self._core = core
        self._then = then
        self._answers: dict[bytes, Taken] = {}
        bodies = [slot.body for slot in planned.slots]
        self._command = "setFunctionBreakpoints" if place == FUNCTIONS else "setBreakpoints"
        arguments: Body = {"breakpoints": bodies}
        if place != FUNCTIONS:
            arguments["source"] = source
            arguments["lines"] = [body.get("line", 1) for body in bodies]
        self.waits = any(map(waits, bodies))
        self._message = Broadcast(self._command, arguments)
        self._round = to_ranks.Round(core, self._command, self._answered)

    def sends_as(self, other: Sending | None) -> bool:
        """Whether a rank that was sent the other has the same breakpoints."""
        if other is None:
            return not self.planned.slots and not self.planned.refused
        mine, theirs = self.planned, other.planned
        return (mine.slots, mine.refused) == (theirs.slots, theirs.refused)

    def send(self, rank: Rank) -> None:
        """Send it to one rank."""
        self._round.ask(rank, self._message)

    def _answered(self, rank: Rank, reply: Reply) -> None:
        self._then(self, rank, self._read(rank, reply))

    def _read(self, rank: Rank, reply: Reply) -> Taken:
        if not reply.ok:
            return self._taken([], reply)
        text = bytes(reply.body)
        known = self._answers.get(text)
        if known is None:
            try:
                said = read(reply.body, BreakpointStates)
            except PeerFault as error:
                return self._taken([], to_ranks.malformed(self._core, rank, self._command, error))
            known = self._taken(said.breakpoints or [], reply)
            if len(self._answers) < MAX_ANSWERS:
                self._answers[text] = known
        return known

    def _taken(self, told: list[Body | None], reply: Reply) -> Taken:
        ids: Ids = {}
        states: list[tuple[Breakpoint, Body]] = []
        for index, slot in enumerate(self.planned.slots):
            state = (told[index] if index < len(told) else None) or _failure(reply)
            if isinstance(state.get("id"), int):
                ids[state["id"]] = slot.breakpoints
            states += [(item, _named(state, item)) for item in slot.breakpoints]
        for item, reason in self.planned.refused:
            states.append((item, {"verified": False, "message": reason}))
        known = [state for state in told if state]
        missing = any(state.get("message") == NO_FILE for state in known)
        return Taken(ids, tuple(states), bool(known), missing)


class Sendings:
    """The sendings of one place: one for each plan that a rank needs.

    `wanted`: the breakpoints of each client.
    """

    def __init__(
        self,
        core: SessionState,
        place: Place,
        source: Body,
        wanted: Mapping[int, Sequence[Breakpoint]],
        then: OnPlanTaken,
    ) -> None:
        self.place = place
        self._core = core
        self._source = source
        self._then = then
        self._world = core.world()
        self._clients = list(wanted)
        breakpoints = [item for items in wanted.values() for item in items]
        sets = [ranks for item in breakpoints for ranks in item.sets]
        self._lasts = not any(ranks.varies_in(self._world.names, set()) for ranks in sets)
        self._plans = Plans(breakpoints, self._world)
        self._sendings: dict[Plan, Sending] = {}

    def holds_in(self, world: World, clients: list[int]) -> bool:
        """Whether they are right for a rank that comes to this world, and to these clients."""
        return self._lasts and world is self._world and clients == self._clients

    def of(self, rank: Rank) -> Sending:
        """Return what is to be sent to a rank."""
        planned = self._plans.of(rank.id, partial(values_of, self._core, rank))
        sending = self._sendings.get(planned)
        if sending is None:
            sending = Sending(self._core, self.place, self._source, planned, self._then)
            self._sendings[planned] = sending
        return sending


def _failure(reply: Reply) -> Body:
    return {"verified": False, "message": reply.problem or "not verified"}


def _named(state: Body, item: Breakpoint) -> Body:
    """Return a state with our id, where the rank has given one: so equal ones are equal."""
    return {**state, "id": item.id} if "id" in state else state
