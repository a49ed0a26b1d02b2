"""The tree of a rank set: its operators, and its atoms, which are a name, or count.

Nodes compare by meaning: their place in the text (`place`) only serves messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypeAlias

from msgspec.structs import replace

from dap_mux.pure.printable import did_you_mean
from dap_mux.pure.rank_sets.tokens import Place, RankSetError, UnknownDimension
from dap_mux.pure.rank_sets.world import Mesh, RankId, RankSet, Selection, fold_numbers

MAX_NAMED_SET_DEPTH = 8
"""Named sets may refer to named sets this many times over; bounds the recursion."""


@dataclass(frozen=True)
class All(RankSet):
    """Every rank, of one group where one is named."""

    group: str | None
    place: Place = field(compare=False, repr=False)

    def members(self, selection: Selection) -> frozenset[RankId]:
        if self.group is None:
            return frozenset(selection.world.ranks)
        group = selection.group(self.group, self.place)
        return frozenset((group, rank) for rank in selection.world.named.get(group, ()))

    def __str__(self) -> str:
        return "all" if self.group is None else f"{self.group}:all"


@dataclass(frozen=True)
class InState(RankSet):
    """The ranks that are in a state now, of one group where one is named."""

    group: str | None
    state: str
    place: Place = field(compare=False, repr=False)

    def varies_in(self, names: Mapping[str, RankSet], seen: set[str]) -> bool:
        return True

    def members(self, selection: Selection) -> frozenset[RankId]:
        everyone = All(self.group, self.place).members(selection)
        states = selection.world.states
        ranks = selection.world.themselves(everyone)
        return frozenset(rank for rank in ranks if states.get(rank) == self.state)

    def __str__(self) -> str:
        return self.state if self.group is None else f"{self.group}:{self.state}"


@dataclass(frozen=True)
class Named(RankSet):
    """The set that the session knows by a name."""

    name: str
    place: Place = field(compare=False, repr=False)

    def varies_in(self, names: Mapping[str, RankSet], seen: set[str]) -> bool:
        named = names.get(self.name)
        if named is None or self.name in seen:
            return False  # without the name it has no members at any time
        if len(seen) == MAX_NAMED_SET_DEPTH:
            return True
        seen.add(self.name)
        return named.varies_in(names, seen)

    def members(self, selection: Selection) -> frozenset[RankId]:
        named = selection.world.names.get(self.name)
        if named is None:
            raise RankSetError(f"no set {self}: {self._suggestion(selection)}", self.place)
        if self.name in selection.trail:
            raise RankSetError(f"{self} is defined in terms of itself", self.place)
        if len(selection.trail) == MAX_NAMED_SET_DEPTH:
            message = f"{self} is the end of a chain of more than {MAX_NAMED_SET_DEPTH} names"
            raise RankSetError(message, self.place)
        return _members(named, replace(selection, trail=(*selection.trail, self.name)))

    def _suggestion(self, selection: Selection) -> str:
        return did_you_mean(f"{self}", (f"@{name}" for name in selection.world.names))

    def __str__(self) -> str:
        return f"@{self.name}"


@dataclass(frozen=True)
class Complement(RankSet):
    """`~a`: every rank of the session that is not in it."""

    inner: RankSet

    def varies_in(self, names: Mapping[str, RankSet], seen: set[str]) -> bool:
        return self.inner.varies_in(names, seen)

    def members(self, selection: Selection) -> frozenset[RankId]:
        return frozenset(selection.world.ranks) - _members(self.inner, selection)

    def __str__(self) -> str:
        return f"~{_bracketed(self.inner)}"


@dataclass(frozen=True)
class _Combination(RankSet):
    parts: tuple[RankSet, ...]
    sign: ClassVar[str]
    combined: ClassVar[Callable[..., frozenset[RankId]]]

    def varies_in(self, names: Mapping[str, RankSet], seen: set[str]) -> bool:
        return any(part.varies_in(names, seen) for part in self.parts)

    def members(self, selection: Selection) -> frozenset[RankId]:
        return self.combined(*(_members(part, selection) for part in self.parts))

    def __str__(self) -> str:
        return f" {self.sign} ".join(map(_bracketed, self.parts))


class Union(_Combination):
    """`a | b | ...`: the ranks in any."""

    sign = "|"
    combined = staticmethod(frozenset.union)


class Intersection(_Combination):
    """`a & b & ...`: the ranks in all."""

    sign = "&"
    combined = staticmethod(frozenset.intersection)


class Difference(_Combination):
    """`a - b - ...`: the ranks of the first that are in none of the rest."""

    sign = "-"
    combined = staticmethod(frozenset.difference)


def _members(part: RankSet, selection: Selection) -> frozenset[RankId]:
    """Each set once: a short text may name the same one many times, and names lead to names."""
    if part not in selection.known:
        selection.known[part] = selection.world.themselves(part.members(selection))
    return selection.known[part]


def _bracketed(part: RankSet) -> str:
    """A part's text inside a bigger one: precedence is never left to the reader."""
    return f"({part})" if isinstance(part, _Combination) else str(part)


# The atoms that count: rank numbers, ranges and slices, of ranks or of mesh coordinates.

_NUMBER = re.compile(r"[0-9]+")


class Run(NamedTuple):
    """`0-3`: both ends included; clips."""

    first: int
    last: int

    def span(self, limit: int) -> range:
        return range(self.first, min(self.last + 1, limit))

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


class Slice(NamedTuple):
    """`1:10:2`: half-open, each part optional; clips."""

    start: int | None
    stop: int | None
    step: int | None

    def span(self, limit: int) -> range:
        return range(limit)[self.start : self.stop : self.step]

    def __str__(self) -> str:
        parts = (self.start, self.stop, self.step)
        start, stop, step = ("" if part is None else str(part) for part in parts)
        return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


Index: TypeAlias = int | Run | Slice
"""A number must exist; its column stands in the columns of what holds it."""


# Groups: numbers and dimensions without a group's name are of the only group there is, or
# of the world's default group. `all`, states and `~` span every group.
#
# Ranks that are not there: a rank named by its number must exist: `ranks(9)` of four ranks
# is an error, and so is `tp=7` of a dimension of four. Ranges and slices clip, as Python's
# do: `0-7` and `ranks(2:)` select what there is of them, perhaps nothing. Where ranks may
# still come, as in breakpoints, `select(world, strict=False)` passes over absent ranks and
# groups; unknown names and dimensions are errors even then.
@dataclass(frozen=True)
class Numbers(RankSet):
    """Global ranks of one group; without indices all of them."""

    group: str | None
    indices: tuple[Index, ...]
    columns: tuple[int, ...] = field(compare=False, repr=False)
    place: Place = field(compare=False, repr=False)

    def members(self, selection: Selection) -> frozenset[RankId]:
        group = selection.group(self.group, self.place)
        known = selection.world.named.get(group, frozenset())
        if selection.strict:
            self._check(group, known)
        return frozenset((group, rank) for rank in _pick(self.indices, known))

    def _check(self, group: str, known: frozenset[int]) -> None:
        for index, column in zip(self.indices, self.columns, strict=True):
            if isinstance(index, int) and index not in known:
                there = f"it has {fold_numbers(known)}" if known else "no rank is known yet"
                place = _number_at(self.place.text, column)
                raise RankSetError(f"no rank {index} in group {group}: {there}", place)

    def __str__(self) -> str:
        text = ",".join(map(str, self.indices))
        if not self.indices or any(isinstance(index, Slice) for index in self.indices):
            return f"{_owner(self.group)}ranks({text})"
        return text if self.group is None else f"{self.group}:{text}"


@dataclass(frozen=True)
class Dim:
    """`dp=(1,3)`: the coordinates selected in one dimension."""

    name: str
    indices: tuple[Index, ...]
    columns: tuple[int, ...] = field(compare=False, repr=False)
    place: Place = field(compare=False, repr=False)

    def wanted(self, size: int) -> frozenset[int]:
        """The coordinates below `size` that are meant. Raises RankSetError for one beyond."""
        for index, column in zip(self.indices, self.columns, strict=True):
            if isinstance(index, int) and index >= size:
                message = f"no {self.name}={index}: {self.name} has {fold_numbers(range(size))}"
                raise RankSetError(message, _number_at(self.place.text, column))
        return _pick(self.indices, frozenset(range(size)))

    def __str__(self) -> str:
        text = ",".join(map(str, self.indices))
        return f"{self.name}={text}" if len(self.indices) == 1 else f"{self.name}=({text})"


@dataclass(frozen=True)
class Coordinates(RankSet):
    """The ranks of one group at these places of its mesh; dimensions not named are free."""

    group: str | None
    dims: tuple[Dim, ...]
    place: Place = field(compare=False, repr=False)

    def members(self, selection: Selection) -> frozenset[RankId]:
        group = selection.group(self.group, self.place)
        ranks = selection.world.named.get(group)
        if ranks is None and self.group is not None:
            return frozenset()  # a group that may yet come, mesh and all
        mesh = selection.world.meshes.get(group, Mesh(()))
        wanted = {dim.name: dim.wanted(self._size(group, mesh, dim)) for dim in self.dims}
        # Ranks beyond the mesh have no coordinates, so no coordinates choose them.
        inside = (rank for rank in ranks or () if rank in mesh)
        return frozenset((group, rank) for rank in inside if _at(mesh.coords(rank), wanted))

    def _size(self, group: str, mesh: Mesh, dim: Dim) -> int:
        sizes = dict(mesh.dims)
        if not sizes:
            message = f"group {group} has no mesh dimensions: --mesh dp=2,tp=4 names them"
            raise UnknownDimension(group, message, dim.place)
        if dim.name not in sizes:
            message = f"no dimension '{dim.name}': {did_you_mean(dim.name, sizes)}"
            raise UnknownDimension(group, message, dim.place)
        return sizes[dim.name]

    def __str__(self) -> str:
        return f"{_owner(self.group)}ranks({', '.join(map(str, self.dims))})"


def _owner(group: str | None) -> str:
    return "" if group is None else f"{group}."


def _at(coords: dict[str, int], wanted: dict[str, frozenset[int]]) -> bool:
    # A rank without a known coordinate in a dimension is not selected by that dimension.
    return all(coords.get(name) in places for name, places in wanted.items())


def _pick(indices: tuple[Index, ...], known: frozenset[int]) -> frozenset[int]:
    """Return the known ranks among the indices; all known ranks without indices."""
    if not indices:
        return known
    found = known.intersection(index for index in indices if isinstance(index, int))
    limit = max(known, default=-1) + 1
    spans = (index.span(limit) for index in indices if not isinstance(index, int))
    return found.union(*(_within(span, known) for span in spans))


def _within(span: range, known: frozenset[int]) -> Iterable[int]:
    # Either may be far longer: rank numbers come from outside, and so do ranges.
    return known.intersection(span) if len(span) < len(known) else {n for n in known if n in span}


def _number_at(text: str, column: int) -> Place:
    """Where the number stands that begins at the column, or behind spaces there."""
    found = _NUMBER.search(text, column)
    assert found is not None
    return Place(text, found.start(), len(found[0]))
