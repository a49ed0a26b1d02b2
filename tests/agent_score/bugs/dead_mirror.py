"""Rank 2 asks a mirror that is gone, and tries again each time before it reads its own copy.

Aligns reads against blocks of a genome that a file server near each rank has.
"""

from __future__ import annotations

import random
import socket
import time
from contextlib import suppress
from dataclasses import dataclass

from mini_mpi import Comm

LETTERS = "ACGT"
BLOCK = 4000
READS = 30
ATTEMPTS = 4
PAUSE = 0.12  # seconds between attempts


@dataclass
class BlockStore:
    """Blocks of the genome: from a mirror if one is configured, else from the local disk."""

    mirror: tuple[str, int] | None

    def block(self, number: int) -> str:
        if self.mirror is not None:
            data = self.fetched(self.mirror, number)
            if data is not None:
                return data
        return self.local(number)

    def fetched(self, mirror: tuple[str, int], number: int) -> str | None:
        """Return the answer of the mirror, or None after some attempts."""
        for _ in range(ATTEMPTS):
            with suppress(OSError), socket.create_connection(mirror, timeout=2) as connection:
                connection.sendall(f"GET {number}\n".encode())
                return connection.makefile().read()
            time.sleep(PAUSE)  # BUG
        return None

    def local(self, number: int) -> str:
        return "".join(random.Random(number).choices(LETTERS, k=BLOCK))


def mirror_of(rank: int) -> tuple[str, int] | None:
    return {2: ("127.0.0.1", 9)}.get(rank)


def reads(block: str, chance: random.Random) -> list[str]:
    places = [chance.randrange(BLOCK - 24) for _ in range(READS)]
    return [block[place : place + 24] for place in places]


def main() -> None:
    comm = Comm()
    store = BlockStore(mirror_of(comm.rank))
    chance = random.Random(comm.rank)
    placed = 0.0
    for step in range(100_000):
        block = store.block(step * comm.size + comm.rank)  # BUG
        found = sum(1 for read in reads(block, chance) if block.find(read) >= 0)
        time.sleep(0.03)
        placed += comm.allreduce([float(found)])[0]
        if comm.rank == 0 and step % 5 == 0:
            print(f"step {step}: {placed:.0f} reads placed", flush=True)


if __name__ == "__main__":
    main()
