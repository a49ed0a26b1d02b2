"""Rank 5's region has more tiles than its cache holds: it decodes each again in every pass.

Flood simulation over a map whose tiles are decoded once and kept.
"""

from __future__ import annotations

import random
import zlib
from functools import lru_cache

from mini_mpi import Comm

SIDE = 64
TILES = {5: 9}  # a region with a delta
USUAL = 6
REPEATS = 100


@lru_cache(maxsize=8)  # BUG
def tile(region: int, number: int) -> list[int]:
    """The heights of one tile, decoded."""
    data = encoded(region, number)
    for _ in range(REPEATS):  # the format has layers
        data = zlib.decompress(zlib.compress(data, 6))  # BUG
    heights = list(data)
    for i in range(1, len(heights)):
        heights[i] = (heights[i] + heights[i - 1]) // 2
    return heights


def encoded(region: int, number: int) -> bytes:
    return random.Random(100 * region + number).randbytes(SIDE * SIDE)


def flooded(heights: list[int], level: int) -> int:
    return sum(1 for height in heights[::8] if height < level)


class Region:
    """The part of the map that one rank has."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.tiles = TILES.get(number, USUAL)

    def wet(self, level: int) -> float:
        total = 0
        for number in range(self.tiles):
            total += flooded(tile(self.number, number), level)  # BUG
        return float(total)


def main() -> None:
    comm = Comm()
    region = Region(comm.rank)
    for step in range(100_000):
        level = 80 + step % 40
        wet = comm.allreduce([region.wet(level)])[0]
        if comm.rank == 0:
            print(f"step {step}: {wet:.0f} cells under water at {level}", flush=True)


if __name__ == "__main__":
    main()
