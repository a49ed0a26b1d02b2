"""The atoms that count: rank numbers, ranges and slices, of ranks or of mesh coordinates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from dap_mux.rank_sets.errors import Place, RankSetError, UnknownDimension
from dap_mux.rank_sets.fold import fold_numbers
from dap_mux.rank_sets.world import Mesh, RankId, RankSet, Selection
from dap_mux.suggestions import did_you_mean

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
