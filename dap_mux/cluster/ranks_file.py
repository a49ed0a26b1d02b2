"""`@ranks.json`: a ranks file, read again whenever it changes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio

from dap_mux.cluster.records import RankRecord, read_ranks_file
from dap_mux.cluster.source import reach_directly
from dap_mux.errors import UsageError

POLL_INTERVAL_S: Final = 1.0
# A file that was changed this recently can change again with the same mtime.
MTIME_GRANULARITY_S: Final = 2.0


class RanksFile:
    """A `Source`: the ranks listed in a file."""

    lingers = 0.0
    reach = staticmethod(reach_directly)

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._read: tuple[int, int] | None = None
        self._fresh = False
        self._ranks: Sequence[RankRecord] | None = None

    async def discover(self) -> Sequence[RankRecord]:
        """Read the file. Raises `UsageError`, naming file and entry."""
        self._read = self._state()
        self._fresh = (
            self._read is not None and time.time() - self._read[0] / 1e9 < MTIME_GRANULARITY_S
        )
        first = self._ranks is None
        self._ranks = [_identified(one) for one in read_ranks_file(self._path)]
        if first and not self._ranks:
            raise UsageError(f"{self._path}: no ranks are in it")
        return self._ranks

    async def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """Yield the ranks whenever they have changed. Raises `UsageError`."""
        while True:
            await anyio.sleep(POLL_INTERVAL_S)
            if self._fresh or self._state() != self._read:
                before, ranks = self._ranks, await self.discover()
                if ranks != before:
                    yield ranks

    def _state(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size


def _identified(record: RankRecord) -> RankRecord:
    """Treat another address or pid as another process of the same rank."""
    return replace(record, incarnation=f"{record.endpoint} {record.pid or ''}")
