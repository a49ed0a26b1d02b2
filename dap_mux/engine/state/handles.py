"""Translates the ranks' ids to ids of the session and back."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, TypeVar, cast

from msgspec import Struct, field

from dap_mux.pure.errors import DapMuxError, StaleHandle
from dap_mux.pure.protocol.exchange import Id, IdFault, Kind
from dap_mux.pure.rank_sets.world import DebuggeeId, worker_of

K = TypeVar("K")
V = TypeVar("V")
IdT = TypeVar("IdT", bound=Id)


class Recent(OrderedDict[K, V]):
    """Keeps the newest `limit` entries, so that peers cannot fill the memory.

    Setting an entry again makes it the newest.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._limit:
            self.popitem(last=False)


MAX_HANDLE: Final = 2**31 - 1
"""DAP: "should be less than or equal to 2147483647 (2^31-1)"."""

_OF_A_STOP: Final = frozenset(
    {Kind.FRAME, Kind.VARIABLES, Kind.GOTO, Kind.STEP_IN, Kind.LOCATION, Kind.MEMORY}
)
_MAX_EXPIRED: Final = 4096  # expired handles whose error gives the reason
MAX_PER_RANK: Final = 65_536  # that end with a stop, and as many others
MAX_TEXT: Final = 1024  # characters of an id that is a string


class _Owner(Struct, frozen=True):
    rank: DebuggeeId
    kind: Kind
    upstream: Id


class _Owned(Struct):
    """The ids of one rank, mapped to ours."""

    stop: dict[tuple[Kind, Id], Id] = field(default_factory=dict)
    lasting: dict[tuple[Kind, Id], Id] = field(default_factory=dict)

    def of(self, kind: Kind) -> dict[tuple[Kind, Id], Id]:
        return self.stop if kind in _OF_A_STOP else self.lasting


# debugpy's ids are small, collide across ranks and are reused after a stop (measured), so each gets
# a number of ours that is never reused. A number whose stop is over remains an error and never
# means another rank's data.
class Handles:
    """Both directions of the translation. Memory is bounded by the handles that are alive."""

    def __init__(self, first: int = 1) -> None:
        self._next = first
        self._owners: dict[Id, _Owner] = {}
        self._owned: dict[DebuggeeId, _Owned] = {}
        self._ends: Recent[Id, str] = Recent(_MAX_EXPIRED)
        self._resumed: Recent[Id, tuple[_Owner, _Owned]] = Recent(_MAX_EXPIRED)

    def __len__(self) -> int:
        """Return the number of handles that are alive."""
        return len(self._owners)

    def mint(self, rank: DebuggeeId, kind: Kind, upstream: IdT) -> IdT:
        """Return our id for a rank's own: the same until it expires, a string for a string."""
        known = self._owned.setdefault(rank, _Owned()).of(kind)
        handle = known.get((kind, upstream))
        if handle is None:
            if isinstance(upstream, str) and len(upstream) > MAX_TEXT:
                raise IdFault(f"a {kind.value} of {len(upstream)} characters")
            handle = known[kind, upstream] = self._new(upstream)
            self._owners[handle] = _Owner(rank, kind, upstream)
            if len(known) > MAX_PER_RANK:
                self._forget_oldest(rank, known)
        return cast("IdT", handle)

    def _forget_oldest(self, rank: DebuggeeId, known: dict[tuple[Kind, Id], Id]) -> None:
        """Expire the oldest id of a rank that has given out too many."""
        handle = known.pop(next(iter(known)))
        del self._owners[handle]
        self._ends[handle] = f"{_name(rank)} has handed out too many since"

    def reserve(self) -> int:
        """Return a number that never belongs to a rank."""
        return self._new(0)

    def is_alive(self, handle: Id) -> bool:
        """Whether a handle can be resolved."""
        return handle in self._owners

    def resolve(self, kind: Kind, handle: IdT) -> tuple[DebuggeeId, IdT]:
        """Return the rank that owns `handle` and its own id; raise `StaleHandle` if none does."""
        owner = self._owners.get(handle)
        if owner is None or owner.kind is not kind:
            raise StaleHandle(self._why(kind, handle, owner))
        return owner.rank, cast("IdT", owner.upstream)

    def resumed(self, kind: Kind, handle: Id) -> DebuggeeId | None:
        """Return the rank that has run on since it had this id; None if that is not why it ended.

        None, too, once the process or the connection that the id belonged to is gone.
        """
        owner, owned = self._resumed.get(handle, (None, None))
        if owner is None or owner.kind is not kind or self._owned.get(owner.rank) is not owned:
            return None
        return owner.rank

    def expire_stop(self, rank: DebuggeeId) -> None:
        """Expire frames, variables and the like: the rank runs on."""
        if (owned := self._owned.get(rank)) is not None:
            for handle in owned.stop.values():
                self._resumed[handle] = self._owners[handle], owned
            self._expire(owned.stop, f"{_name(rank)} has run on since")

    def expire_rank(self, rank: DebuggeeId) -> None:
        """Expire all ids of a rank whose process or connection is gone."""
        if (owned := self._owned.pop(rank, None)) is not None:
            self._expire(owned.stop, f"{_name(rank)} is gone")
            self._expire(owned.lasting, f"{_name(rank)} is gone")
            if not self._owned:  # `resumed` would find nobody
                self._resumed.clear()

    def _expire(self, handles: dict[tuple[Kind, Id], Id], end: str) -> None:
        for handle in handles.values():
            del self._owners[handle]
            self._ends[handle] = end
        handles.clear()

    def _new(self, like: IdT) -> IdT:
        number = self._next
        if number > MAX_HANDLE:
            raise DapMuxError("this session has used up its ids; start a new one")
        self._next += 1
        return cast("IdT", str(number) if isinstance(like, str) else number)

    def _why(self, kind: Kind, handle: Id, owner: _Owner | None) -> str:
        if owner is not None:
            return f"{handle} is a {owner.kind.value}, not a {kind.value}"
        if handle in self._ends:
            return f"{kind.value} {handle} is stale: {self._ends[handle]}"
        if self._was_given_out(handle):
            return f"{kind.value} {handle} is stale: its rank has run on since"
        return f"{kind.value} {handle} is unknown: this session never handed it out"

    def _was_given_out(self, handle: Id) -> bool:
        number = int(handle) if str(handle).isdecimal() and len(str(handle)) < 11 else 0
        return 0 < number < self._next


def _name(rank: DebuggeeId) -> str:
    group, number, worker = rank[0], rank[1], worker_of(rank)
    name = f"rank {number}" if group == "job" else f"rank {number} @{group}"
    return name if worker is None else f"{name} / worker {worker}"
