"""A ranks file that is followed: whatever is written into it is read."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from dap_mux.cluster import endpoints
from dap_mux.cluster.endpoints import RanksFile
from dap_mux.cluster.records import RankRecord, read_ranks_file
from dap_mux.errors import UsageError

AHEAD = time.time_ns() + 10**12  # by a clock that is ahead: no pause of ours makes the file old


def write(path: Path, port: int) -> None:
    """Write one rank into it; size and time are the same each time."""
    path.write_text(json.dumps([{"host": "node1", "port": port}]))
    os.utime(path, ns=(AHEAD, AHEAD))


async def test_a_change_that_its_time_does_not_show_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice written within one tick of the file system's clock; the same ranks are no news."""
    path, reads = tmp_path / "ranks.json", []

    def reading(of: Path) -> list[RankRecord]:
        found = read_ranks_file(of)
        reads.append(found)
        if len(reads) == 3:
            write(path, 5679)
        return found

    monkeypatch.setattr(endpoints, "POLL_INTERVAL_S", 0.0)
    monkeypatch.setattr(endpoints, "read_ranks_file", reading)
    write(path, 5678)
    source = RanksFile(str(path))
    assert [one.port for one in await source.discover()] == [5678]
    async for ranks in source.watch():
        assert [one.port for one in ranks] == [5679]
        break
    assert len(reads) == 4


async def test_a_file_without_ranks_is_refused(tmp_path: Path) -> None:
    """At the beginning: who would wait for it would see nothing of a wrong file."""
    path = tmp_path / "ranks.json"
    path.write_text("[]")
    with pytest.raises(UsageError, match="no ranks are in it"):
        await RanksFile(str(path)).discover()
