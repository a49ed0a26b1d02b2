"""How a breakpoint compares its ranks."""

from __future__ import annotations

from typing import NamedTuple


class Differ(NamedTuple):
    """Ranks that differ in `dimensions` only are compared, all of them where that is empty.

    `tolerance` is relative, as in `compare`.
    """

    dimensions: tuple[str, ...] = ()
    tolerance: float = 0.0
