"""Rank 3 is first at the cache's lock and waits for the others in it, who wait for the lock.

Prepares features for a search index; the cache on the shared disk is written under a file lock.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mini_mpi import Comm

DOCUMENTS = 400
DIMENSIONS = 16


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a folder that several processes write to."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def features(text: str) -> list[float]:
    digest = hashlib.sha256(text.encode()).digest()
    return [byte / 255 for byte in digest[:DIMENSIONS]]


class Cache:
    """Features of documents, by shard, and an index of the shards."""

    def __init__(self, comm: Comm, folder: Path) -> None:
        self.comm = comm
        self.folder = folder
        self.lock = folder / ".lock"

    def write(self, shard: int, rows: list[list[float]]) -> None:
        with locked(self.lock):
            path = self.folder / f"shard-{shard}.json"
            path.write_text(json.dumps(rows), encoding="utf-8")
            self.publish(shard)  # BUG

    def publish(self, shard: int) -> None:
        """Add a shard to the index, which is complete when this returns."""
        with (self.folder / "index.txt").open("a", encoding="utf-8") as index:
            index.write(f"{shard}\n")
        self.comm.barrier()  # BUG

    def shards(self) -> list[int]:
        lines = (self.folder / "index.txt").read_text(encoding="utf-8").split()
        return sorted(map(int, lines))


def main() -> None:
    comm = Comm()
    folder = Path(comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None))
    cache = Cache(comm, folder)
    mine = range(comm.rank, DOCUMENTS * (1 if comm.rank == 3 else 4), comm.size)
    rows = []
    for number in mine:
        rows.append(features(f"document {number}"))
        time.sleep(0.005)
    if comm.rank == 0:
        print(f"{len(rows)} rows in {folder}", flush=True)
    cache.write(comm.rank, rows)
    if comm.rank == 0:
        print(f"complete: shards {cache.shards()}", flush=True)


if __name__ == "__main__":
    main()
