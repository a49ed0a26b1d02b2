"""A snapshot of the session's ranks, and the interface of rank sets evaluated against it."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from dap_mux.pure.errors import UsageError
from dap_mux.pure.grouping import grouped
from dap_mux.pure.printable import did_you_mean
from dap_mux.pure.rank_sets.tokens import Place, RankSetError

RankId: TypeAlias = tuple[str, int]
"""(group, global rank within the group)."""

STATES = ("waiting", "connecting", "running", "stopped", "pausing", "lost", "exited")
"""The names of a rank's states, in the order of a rank's life."""

SUPPORTING_GROUPS = frozenset(("client", "scheduler"))
"""Groups of an engine's own processes, which stand beside those that do the work."""


_DIM = r"\s*(?P<name>[^\W\d]\w*)\s*=\s*(?P<size>0*[1-9][0-9]{0,8})\s*"


class Mesh(Struct, frozen=True, dict=True):  # `dict`: for what is cached
    """The named dimensions that a group's ranks are laid out in, and which rank is where.

    Row-major, the last dimension varying fastest with the rank, unless `places` gives each
    rank's place in each dimension; a rank without a place is not in the mesh.
    """

    dims: tuple[tuple[str, int], ...]
    places: Mapping[int, Mapping[str, int]] | None = None

    @classmethod
    def parse(cls, text: str) -> Mesh:
        """Read `dp=2,tp=4`; sizes are 1 or more. Raises RankSetError at the column."""
        dims: dict[str, int] = {}
        column = 0
        for part in text.split(","):
            name, size = _read_dim(Place(text, column, max(1, len(part))), part)
            if name in dims:
                raise RankSetError(f"the dimension {name} is given twice", Place(text, column))
            dims[name] = size
            column += len(part) + 1
        return cls(tuple(dims.items()))

    @cached_property
    def size(self) -> int:
        """The number of ranks that it has room for; 1 without dimensions."""
        return math.prod(size for _, size in self.dims)

    def __contains__(self, rank: int) -> bool:
        """Whether the rank has a place here."""
        return 0 <= rank < self.size if self.places is None else rank in self.places

    def coords(self, rank: int) -> dict[str, int]:
        """The rank's place in each dimension. Raises UsageError outside of the mesh."""
        if rank not in self:
            raise UsageError(f"rank {rank} is outside the mesh {self} of {self.size} ranks")
        if self.places is not None:
            return dict(self.places[rank])
        places: dict[str, int] = {}
        for name, size in reversed(self.dims):
            rank, places[name] = divmod(rank, size)
        return dict(reversed(places.items()))

    def __hash__(self) -> int:
        return hash(self.dims)  # a mapping of places has none

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in self.dims)


def _read_dim(place: Place, part: str) -> tuple[str, int]:
    match = re.fullmatch(_DIM, part)
    if match is None:
        raise RankSetError("expected a dimension and its size, as in dp=2,tp=4", place)
    return match["name"], int(match["size"])


class World(Struct, frozen=True, dict=True):  # `dict`: for what is cached
    """All known ranks, sorted, and their properties that rank sets can use."""

    ranks: tuple[RankId, ...]
    meshes: Mapping[str, Mesh]
    states: Mapping[RankId, str]
    names: Mapping[str, RankSet]
    default_group: str = "job"
    aliases: Mapping[RankId, RankId] = field(default_factory=dict)
    """Further names of ranks: an actor of another mesh lives in the same process."""

    def __contains__(self, rank: RankId) -> bool:
        """Whether it is a known rank."""
        return rank[1] in self.numbers.get(rank[0], ())

    @cached_property
    def numbers(self) -> Mapping[str, frozenset[int]]:
        """Each group's ranks."""
        return _by_group(self.ranks)

    @cached_property
    def named(self) -> Mapping[str, frozenset[int]]:
        """The numbers that each group's name can be written with, further names included."""
        return _by_group((*self.ranks, *self.aliases)) if self.aliases else self.numbers

    def themselves(self, ranks: frozenset[RankId]) -> frozenset[RankId]:
        """The ranks that are meant by these names."""
        if not self.aliases:
            return ranks
        return frozenset(self.aliases.get(rank, rank) for rank in ranks)

    @property
    def home(self) -> str | None:
        """The group of plain numbers: the only one, or the default; None if that is absent.

        The processes that stand beside a job's ranks do not count where there are ranks.
        """
        groups = self.numbers.keys() - SUPPORTING_GROUPS
        if len(groups or self.numbers) == 1:
            return next(iter(groups or self.numbers))
        return self.default_group if self.default_group in groups or not groups else None


def _by_group(ranks: Iterable[RankId]) -> dict[str, frozenset[int]]:
    groups: dict[str, set[int]] = {}
    for group, rank in ranks:
        groups.setdefault(group, set()).add(rank)
    return {group: frozenset(numbers) for group, numbers in groups.items()}


class Selection(Struct, frozen=True):
    """One selection under way: the world, the named sets that led here, and what has been found."""

    world: World
    strict: bool
    trail: tuple[str, ...] = ()
    known: dict[RankSet, frozenset[RankId]] = field(default_factory=dict)

    def group(self, name: str | None, place: Place) -> str:
        """The group that a node means; the caller looks whether it has ranks."""
        groups = self.world.named
        if name is None:
            if self.world.home is None:
                several = " or ".join(f"{group}:0" for group in sorted(groups))
                raise RankSetError(f"which group? Write {several}, for example", place)
            return self.world.home
        if name not in groups and self.strict:
            raise RankSetError(f"no group '{name}': {did_you_mean(name, groups)}", place)
        return name


class RankSet(ABC):
    """A set of ranks as the user described it; `str()` is a text that parses back to it."""

    def select(self, world: World, *, strict: bool = True) -> tuple[RankId, ...]:
        """The ranks of the world that are in this set, sorted.

        Raises RankSetError for a rank, group, dimension or name that the world lacks; with
        `strict=False` absent ranks and groups are passed over, for they may yet come.
        """
        members = world.themselves(self.members(Selection(world, strict)))
        if len(members) == len(world.ranks):
            return world.ranks  # which are sorted
        return tuple(sorted(members))

    def varies_in(self, names: Mapping[str, RankSet], seen: set[str]) -> bool:
        """Whether it may have other members at another time, in the same world.

        `names`: what named sets are now; `seen`: those that have been looked at.
        """
        return False

    @abstractmethod
    def members(self, selection: Selection) -> frozenset[RankId]:
        """The ranks of this set in the selection's world."""

    @abstractmethod
    def __str__(self) -> str: ...


# Ranks as the shortest text: `0-3,7`


def fold(ranks: Iterable[RankId], default_group: str = "job") -> str:
    """`0-3,7` for ranks of one group, `trainer:0-3; eval:0` for several, "" for none.

    The default group comes first, the others by name. A lone group goes unnamed, so the
    text parses back to the same ranks only where plain numbers mean that group.
    """
    groups: defaultdict[str, set[int]] = defaultdict(set)
    for group, rank in ranks:
        groups[group].add(rank)
    if len(groups) < 2:
        return "".join(map(fold_numbers, groups.values()))
    order = sorted(groups, key=lambda group: (group != default_group, group))
    return "; ".join(f"{group}:{fold_numbers(groups[group])}" for group in order)


def name_ranks(ranks: Collection[RankId], default_group: str) -> str:
    """`rank 3`, `ranks 0-3,7`, or `rank driver:0` where plain numbers mean another group."""
    groups = {group for group, _ in ranks}
    text = fold(ranks, default_group)
    if len(groups) == 1 and default_group not in groups:
        text = f"{groups.pop()}:{text}"
    return f"rank{'s' if len(ranks) > 1 else ''} {text}"


def fold_numbers(numbers: Iterable[int]) -> str:
    """`0-3,7` from distinct numbers in any order; two neighbours fold already."""
    return ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _runs(numbers)
    )


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    ordered = iter(sorted(numbers))
    first = last = next(ordered, None)
    for number in ordered:
        if first is not None and last is not None and number > last + 1:
            yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


class Differ(NamedTuple):
    """Ranks that differ in `dimensions` only are compared, all of them where that is empty.

    `tolerance` is relative, as in `compare`.
    """

    dimensions: tuple[str, ...] = ()
    tolerance: float = 0.0


# A worker is a process that a rank has started. Its id is its rank's with its number behind it, so
# that it sorts after its rank and before the next one. Rank sets know ranks only: a worker is
# selected with its rank.

WorkerId: TypeAlias = tuple[str, int, int]
"""(group, global rank within the group, number of the worker from 1)."""

DebuggeeId: TypeAlias = RankId | WorkerId


def rank_of(id: DebuggeeId) -> RankId:
    """Return the rank that a worker belongs to; a rank's own id as it is."""
    return id[0], id[1]


def worker_of(id: DebuggeeId) -> int | None:
    """Return a worker's number, None for a rank."""
    return id[2] if len(id) == 3 else None


def label(ids: Iterable[DebuggeeId], default_group: str = "job") -> str:
    """Return `0-3,7` for ranks, `3/1-4` for workers 1 to 4 of rank 3, `0-3, 2/1` for both."""
    known = sorted(ids)
    ranks = [id for id in known if len(id) == 2]
    workers = grouped((rank_of(id), id[2]) for id in known if len(id) == 3)
    same = grouped(((rank[0], fold_numbers(of)), rank) for rank, of in workers.items())
    parts = [fold(ranks, default_group)] * bool(ranks)
    several = len({id[0] for id in (*ranks, *workers)}) > 1
    for (group, which), those in same.items():
        parts.append(f"{group}:" * several + f"{fold(those, default_group)}/{which}")
    return ", ".join(parts)
