"""The named dimensions that a group's ranks are laid out in."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from dap_mux.errors import UsageError
from dap_mux.rank_sets.errors import Place, RankSetError

_DIM = r"\s*(?P<name>[^\W\d]\w*)\s*=\s*(?P<size>0*[1-9][0-9]{0,8})\s*"


class Mesh(Struct, frozen=True, dict=True):  # `dict`: for what is cached
    """Dimension names and sizes, and which rank is where.

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
