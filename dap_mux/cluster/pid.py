"""Running processes that were not started for debugging: `pid:1234,1235`.

That of a launcher stands for the ranks that it has started.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

import anyio

from dap_mux.cluster.injection import bring_debugpy, debugger_for
from dap_mux.cluster.python_process import RunningPython, ranks_among, refuse_to_trace
from dap_mux.cluster.records import RankRecord
from dap_mux.cluster.source import Description, SourceSpec, reach_directly
from dap_mux.pure.errors import DapMuxError, UsageError

HOST: Final = "127.0.0.1"
POLL_INTERVAL_S: Final = 1.0
_WORD: Final = re.compile(r"[1-9]\d*(?:,[1-9]\d*)*", re.ASCII)


class Pids:
    """A `Source`: processes that the user named by their pids."""

    description = Description(help="pid:NUMBER")

    def __init__(self, word: SourceSpec) -> None:
        self._pids = read_pids(word.rest)
        self._ranks: dict[RunningPython, RankRecord] = {}

    async def discover(self) -> Sequence[RankRecord]:
        """Inject debugpy into each of them, after all have been checked."""
        found = await anyio.to_thread.run_sync(ranks_among, self._pids)
        ports = {process: process.listening_port() for process in found}
        strange = [process for process in found if ports[process] is None]
        for process in strange:
            refuse_to_trace(process)
        ports.update(await _bring_all(strange))
        self._ranks = {process: _record(process, ports[process]) for process in found}
        return [*self._ranks.values()]

    async def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """Yield those that still run, whenever one has ended."""
        while self._ranks:
            await anyio.sleep(POLL_INTERVAL_S)
            left = {process: record for process, record in self._ranks.items() if process.runs}
            if len(left) < len(self._ranks):
                self._ranks = left
                yield [*left.values()]

    lingers = 0.0
    reach = staticmethod(reach_directly)


def read_pids(text: str) -> list[int]:
    """Read what follows `pid:`. Raises `UsageError`."""
    if not _WORD.fullmatch(text):
        raise UsageError(
            f"pid:{text}: not a list of process ids; one looks like pid:1234 or pid:12,34"
        )
    pids = [int(each) for each in text.split(",")]
    twice = [pid for pid in pids if pids.count(pid) > 1]
    if twice:
        raise UsageError(f"pid:{text}: duplicate process {twice[0]}")
    return pids


# debugpy is injected into each: by gdb or lldb, or by `sys.remote_exec` on Python 3.14 and later.
# It stays when we leave, listening on loopback, and is found again: a second injection would
# disconnect a debugger that is attached by then.
async def _bring_all(processes: Sequence[RunningPython]) -> dict[RunningPython, int | None]:
    """Inject debugpy into each; return their ports. Raises the first `DapMuxError`.

    As many at a time as there are processors: a native debugger reads the symbols of all libraries,
    and four of torch's on two processors came near to the limit of one.
    """
    from dap_mux.cluster.machines import side_by_side  # noqa: PLC0415  (6 ms for every command)

    debugger = await debugger_for(processes)
    found = await side_by_side(
        processes, lambda one: bring_debugpy(one, HOST, debugger), os.cpu_count() or 1
    )
    ports: dict[RunningPython, int | None] = {}
    for process, port in found.items():
        if isinstance(port, DapMuxError):
            raise port
        ports[process] = port
    return ports


def _record(process: RunningPython, port: int | None) -> RankRecord:
    assert port is not None
    place = process.place
    return RankRecord(
        host=HOST,
        port=port,
        rank=place.rank,
        pid=process.pid,
        world_size=place.world_size,
        coords=place.coords,
        ready=True,
    )
