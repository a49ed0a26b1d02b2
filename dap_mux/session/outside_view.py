"""What ranks of this machine do, seen from outside: nothing is injected, and none is stopped.

py-spy reads their stacks, and the system tells the rest. Three looks at each; of those, two must
have been read well, for py-spy reads the memory of a process that runs on meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio

from dap_mux import procfs
from dap_mux.cluster.job_processes import ranks_among
from dap_mux.cluster.pid import read_pids
from dap_mux.cluster.py_spy import INSTALL, NoDump, dump, find_py_spy
from dap_mux.cluster.python_process import RunningPython
from dap_mux.cluster.records import DEFAULT_GROUP
from dap_mux.errors import PeerFault
from dap_mux.injected.evidence.thread_states import thread_state
from dap_mux.insight.stack_tree import Stack, agreed, kind_of_thread
from dap_mux.insight.why.evidence import (
    Evidence,
    Process,
    RankEvidence,
    Sample,
    Standing,
    stack_of,
)
from dap_mux.insight.why.py_spy import Source, sample_of, threads_in, variables_of
from dap_mux.rank_sets import RankId
from dap_mux.shell.process_reader import read_processes
from dap_mux.user_files import open_regular

LOOKS: Final = 3
ENOUGH: Final = 2
INTERVAL_S: Final = 0.3
SIDE_BY_SIDE: Final = 8
"""Processes that are looked at by py-spy at a time."""
MAX_SOURCE_BYTES: Final = 2 << 20
NO_PY_SPY: Final = f"its stack cannot be read: py-spy is not installed ({INSTALL})"
NO_LOOK: Final = "nothing is known of its stack"
AT_WORK: Final = "no two looks at it agree: it is at work; ask again"
Named = tuple[str, Stack]
"""A thread's name and stack."""


@dataclass
class OutsideRank:
    """A rank's process, and what has been seen of it so far.

    `variables`: of the function that it is in, as far as py-spy shows them.
    """

    rank: RankId
    process: RunningPython
    samples: list[Sample] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    problem: str = ""
    variables: str = ""

    @property
    def lacks_py_spy(self) -> bool:
        """Whether it has not been looked at because there is no py-spy."""
        return self.problem == NO_PY_SPY

    def stacks(self, *, every_thread: bool) -> list[Named]:
        """Return where two of the looks agree. Raises NoDump."""
        if len(self.samples) < ENOUGH:
            raise NoDump(self.problem or NO_LOOK)
        seen: dict[tuple[str, int], list[Stack]] = {}
        for sample in self.samples:
            for thread in sample.threads:
                if thread.main or every_thread:
                    seen.setdefault((thread.name, thread.tid), []).append(stack_of(sample, thread))
        found = [(name, stack) for (name, _), looks in seen.items() if (stack := agreed(looks))]
        if not found:
            raise NoDump(AT_WORK)
        return found


def pids_of(endpoints: Sequence[str]) -> list[int]:
    """Return the processes that endpoints `pid:12,34` name. Raises `UsageError`."""
    return read_pids(",".join(each.partition(":")[2] for each in endpoints))


def ranks_outside(pids: Sequence[int]) -> list[OutsideRank]:
    """Return the ranks that these processes are or have started. Raises `DapMuxError`.

    Who has no number gets the lowest that is free.
    """
    found = ranks_among(pids)
    numbers = [process.place.rank for process in found]
    free = (number for number in range(len(found)) if number not in numbers)
    return [
        OutsideRank((DEFAULT_GROUP, next(free) if number is None else number), process)
        for process, number in zip(found, numbers, strict=True)
    ]


async def look(ranks: Sequence[OutsideRank], looks: int = LOOKS) -> Evidence:
    """Look at all ranks so many times."""
    began = time.monotonic()
    for at in range(looks):
        if at:
            began_last = time.monotonic()
            await anyio.sleep(max(0.0, began + at * INTERVAL_S - began_last))
        await _look_once(ranks)
    taken = (time.monotonic() - began) / max(1, looks - 1)
    return Evidence({one.rank: _told(one) for one in ranks}, max(INTERVAL_S, taken))


async def _look_once(ranks: Sequence[OutsideRank]) -> None:
    spies, readers = anyio.CapacityLimiter(SIDE_BY_SIDE), anyio.CapacityLimiter(1)
    pids = [str(one.process.pid) for one in ranks]
    async with anyio.create_task_group() as tasks:
        for one in ranks:
            tasks.start_soon(_sample, one, spies, readers)
        seen = await anyio.to_thread.run_sync(read_processes, pids)
    for one, pid in zip(ranks, pids, strict=True):
        one.processes.append(seen[pid])


async def _sample(
    one: OutsideRank, spies: anyio.CapacityLimiter, readers: anyio.CapacityLimiter
) -> None:
    pid = one.process.pid
    py_spy = find_py_spy(pid)
    if py_spy is None:
        one.problem = NO_PY_SPY
        return
    async with spies:
        try:
            threads = threads_in(await dump(py_spy, pid))
        except (NoDump, PeerFault) as error:
            one.problem = str(error)
            return
    one.variables = variables_of(threads, pid)
    # One after the other: threads of ours would read the same sources at once.
    one.samples.append(await anyio.to_thread.run_sync(_sample_of, threads, one, limiter=readers))


def _sample_of(threads: Any, one: OutsideRank) -> Sample:
    pid = one.process.pid

    def state_of(tid: int) -> Mapping[str, Any]:
        return thread_state(tid, str(procfs.folder(pid)))

    return sample_of(threads, pid, state_of, _source_of, one.rank[1])


@cache
def _source_of(path: str) -> Source | None:
    """Return a file's source; a process with other files is refused before.

    The process says what it is called: it may be a device that never ends.
    """
    try:
        with open_regular(Path(path)) as file:
            text = file.read(MAX_SOURCE_BYTES + 1)
    except (OSError, ValueError):
        return None
    return Source(text.decode("utf-8", "replace")) if len(text) <= MAX_SOURCE_BYTES else None


def _told(one: OutsideRank) -> RankEvidence:
    samples = one.samples if len(one.samples) >= ENOUGH else ()
    problem = "" if samples else one.problem or NO_LOOK
    return RankEvidence(one.rank, Standing(problem=problem), samples, one.processes)


def stacks_seen(
    ranks: Sequence[OutsideRank], *, every_thread: bool
) -> tuple[dict[str, list[tuple[RankId, Stack]]], dict[str, list[RankId]]]:
    """Return the stacks of each kind of thread by its name, and who has none by the reason."""
    threads: dict[str, list[tuple[RankId, Stack]]] = {}
    missing: dict[str, list[RankId]] = {}
    for one in ranks:
        try:
            stacks = one.stacks(every_thread=every_thread)
        except NoDump as error:
            missing.setdefault(str(error), []).append(one.rank)
            continue
        for name, stack in stacks:
            threads.setdefault(kind_of_thread(name), []).append((one.rank, stack))
    return threads, missing
