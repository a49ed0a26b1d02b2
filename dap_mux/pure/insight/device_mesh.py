"""Builds one mesh from the meshes that the ranks report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Final

from msgspec import Struct

from dap_mux.pure.rank_sets import Mesh

_DIM: Final = r"[^\W\d]\w{0,63}"
_MAX_MESHES: Final = 64  # meshes of one rank that are looked at, and dimensions of one mesh


class _Told(Struct, frozen=True):
    """One mesh as one rank reports it; `at` is empty if the rank is not in it."""

    dims: tuple[tuple[str, int], ...]
    at: tuple[int, ...]

    @property
    def size(self) -> int:
        return prod(size for _, size in self.dims)


def mesh_of(reports: Mapping[int, object], ranks: Iterable[int]) -> Mesh | None:
    """Return the mesh of `ranks` from the reports of some of them, None if there is none.

    A report is a list of `[names, sizes, place or null]`; anything else in it is ignored. A rank
    that reported no place gets one if the others show that the mesh is row-major.
    """
    told = {rank: list(_read(report)) for rank, report in reports.items()}
    widest = sorted(
        {mesh.dims for meshes in told.values() for mesh in meshes},
        key=lambda dims: (-len(dims), -prod(size for _, size in dims), dims),
    )
    sizes: dict[str, int] = {}
    for dims in widest:
        for name, size in dims:
            sizes.setdefault(name, size)
    if not sizes:
        return None
    found = {rank: _place(meshes, sizes) for rank, meshes in told.items()}
    places = {rank: place for rank, place in found.items() if place}
    plain = Mesh(widest[0])
    if _agree(plain, places):
        places = {rank: plain.coords(rank) for rank in ranks if rank in plain} | places
    mesh = Mesh(tuple(sizes.items()))
    return mesh if _agree(mesh, places) else Mesh(mesh.dims, places)


# A job has one big mesh and parts of it, flattened dimensions, perhaps several meshes over the same
# ranks; each rank knows its own coordinates in each. So dimensions are united by name over all
# meshes, and the ranks' own coordinates count: a `DeviceMesh` need not be row-major.
def united(first: Mesh | None, more: Mesh | None, ranks: Iterable[int]) -> Mesh | None:
    """Return a mesh with the dimensions of both; `first` wins for those that both have."""
    if first is None or more is None:
        return first or more
    dims = {**dict(first.dims), **dict(more.dims), **dict(first.dims)}  # in the order of both
    if len(dims) == len(first.dims):
        return first
    places = {
        rank: _coords(more, rank) | _coords(first, rank)
        for rank in ranks
        if rank in first or rank in more
    }
    return Mesh(tuple(dims.items()), places)


def _coords(mesh: Mesh, rank: int) -> dict[str, int]:
    return mesh.coords(rank) if rank in mesh else {}


def _agree(mesh: Mesh, places: Mapping[int, Mapping[str, int]]) -> bool:
    """Whether the reported places equal those of the row-major mesh."""
    return all(
        rank in mesh and mesh.coords(rank).items() <= place.items()
        for rank, place in places.items()
    )


def _place(meshes: list[_Told], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return a rank's coordinates in the dimensions that it reported, the widest mesh first."""
    place: dict[str, int] = {}
    for mesh in sorted(meshes, key=lambda mesh: (-len(mesh.dims), -mesh.size, mesh.dims)):
        for (name, size), at in zip(mesh.dims, mesh.at, strict=False):
            if sizes[name] == size:
                place.setdefault(name, at)
    return place


def _read(report: object) -> Iterable[_Told]:
    """Yield the valid meshes of a report; ranks are not trusted."""
    for item in report[:_MAX_MESHES] if isinstance(report, list) else ():
        if not (isinstance(item, list) and len(item) == 3):
            continue
        names, sizes, at = item
        if not (_are(str, names) and _are(int, sizes) and len(names) == len(sizes)):
            continue
        fits = all(re.fullmatch(_DIM, name) for name in names) and all(size > 0 for size in sizes)
        if names and fits and len(set(names)) == len(names) <= _MAX_MESHES:
            dims = tuple(zip(names, sizes, strict=True))
            inside = _are(int, at) and len(at) == len(dims)
            yield _Told(dims, tuple(at) if inside else ())


def _are(kind: type, items: object) -> bool:
    return isinstance(items, list) and all(type(item) is kind for item in items)
