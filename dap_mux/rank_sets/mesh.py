"""The named dimensions that a group's ranks are laid out in."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dap_mux.errors import UsageError
from dap_mux.rank_sets.errors import Place, RankSetError

_DIM = re.compile(r"\s*(?P<name>[^\W\d]\w*)\s*=\s*(?P<size>0*[1-9][0-9]{0,8})\s*")


@dataclass(frozen=True)
class Mesh:
    """Dimension names and sizes, row-major: the last one varies fastest with the rank."""

    dims: tuple[tuple[str, int], ...]

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

    @property
    def size(self) -> int:
        """The number of ranks; 1 without dimensions."""
        return math.prod(size for _, size in self.dims)

    def coords(self, rank: int) -> dict[str, int]:
        """The rank's place in each dimension. Raises UsageError outside of the mesh."""
        if not 0 <= rank < self.size:
            raise UsageError(f"rank {rank} is outside of the mesh {self} of {self.size} ranks")
        places: dict[str, int] = {}
        for name, size in reversed(self.dims):
            rank, places[name] = divmod(rank, size)
        return dict(reversed(places.items()))

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in self.dims)


def _read_dim(place: Place, part: str) -> tuple[str, int]:
    match = _DIM.fullmatch(part)
    if match is None:
        raise RankSetError("expected a dimension and its size, as in dp=2,tp=4", place)
    return match["name"], int(match["size"])
