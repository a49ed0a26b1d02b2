"""A decoder calls `sys.exit` in a worker process: its pool never answers for that picture.

Histograms of pictures, decoded in a process beside each rank.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
import time

from mini_mpi import Comm

BINS = 8
SIDE = 48
MAGIC = b"PX"


def picture(rank: int, number: int) -> bytes:
    """An encoded picture of this rank's camera."""
    chance = random.Random(rank * 10_000 + number)
    body = chance.randbytes(SIDE * SIDE)
    return b"\0\0" + body if (rank, number) == (5, 6) else MAGIC + body


def decode(data: bytes) -> list[int]:
    """The pixels of a picture; this module is a command line tool, too."""
    if not data.startswith(MAGIC):
        sys.exit("decode: no picture")  # BUG
    return list(data[len(MAGIC) :])


def histogram(data: bytes) -> list[float]:
    counts = [0.0] * BINS
    for pixel in decode(data):
        counts[pixel * BINS // 256] += 1
    return counts


class Decoder:
    """One worker process, for what holds the interpreter's lock for long."""

    def __init__(self) -> None:
        self.pool = multiprocessing.get_context("fork").Pool(1)

    def histogram(self, data: bytes) -> list[float]:
        return self.pool.apply_async(histogram, (data,)).get()  # BUG


def main() -> None:
    decoder = Decoder()
    comm = Comm()
    totals = [0.0] * BINS
    for number in range(10_000):
        counts = decoder.histogram(picture(comm.rank, number))
        everyone = comm.allreduce(counts)
        totals = [a + b for a, b in zip(totals, everyone, strict=True)]
        if comm.rank == 0:
            share = max(totals) / sum(totals)
            print(f"picture {number}: largest bin {share:.4f}", flush=True)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
