"""What ranks of this machine do, seen from outside: nothing is injected, and none is stopped.

py-spy reads their stacks, and the system tells the rest. Three looks at each; of those, two must
have been read well, for py-spy reads the memory of a process that runs on meanwhile.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio
from msgspec.structs import replace

from dap_mux.cluster.pid import read_pids
from dap_mux.cluster.python_process import OLDEST_PYTHON, RunningPython, ranks_among
from dap_mux.cluster.records import DEFAULT_GROUP
from dap_mux.pure.errors import DapMuxError, PeerFault
from dap_mux.pure.insight.stack_tree import Stack, agreed, kind_of_thread
from dap_mux.pure.insight.why.evidence import (
    Child,
    Evidence,
    Process,
    RankEvidence,
    Sample,
    Standing,
    stack_of,
)
from dap_mux.pure.insight.why.nccl_ras import ras_lines, read_report
from dap_mux.pure.insight.why.py_spy import Source, SpiedFrame, sample_of, threads_in
from dap_mux.pure.insight.why.variables import own_frames
from dap_mux.pure.insight.why.verdict import Verdict
from dap_mux.pure.insight.why.verdicts import AGAIN_AFTER_S, is_doubtful, judge
from dap_mux.pure.printable import one_line
from dap_mux.pure.rank_sets import RankId
from dap_mux.rank.injected.evidence.source_code import polls
from dap_mux.rank.injected.evidence.thread_states import children, thread_state
from dap_mux.rank.ready import STACKS
from dap_mux.shell.local_machine import read_processes
from dap_mux.system import procfs
from dap_mux.system.user_files import open_regular, startable

LOOKS: Final = 3
ENOUGH: Final = 2
INTERVAL_S: Final = 0.3
SIDE_BY_SIDE: Final = 8
"""Processes that are looked at by py-spy at a time."""
MAX_SOURCE_BYTES: Final = 2 << 20
INSTALL: Final = "pip install py-spy"
NO_PY_SPY: Final = f"its stack cannot be read: py-spy is not installed ({INSTALL})"
ENDED: Final = "its process has ended"
NO_LOOK: Final = "nothing is known of its stack"
AT_WORK: Final = "no two looks at it agree: it is at work; ask again"
BEFORE_THE_PROGRAM: Final = "dap_mux/rank/api.py"
Named = tuple[str, Stack]
"""A thread's name and stack."""


@dataclass
class OutsideRank:
    """A rank's process, and what has been seen of it so far.

    `own`: the frames of the program that its main thread is in, innermost first, as far as py-spy
    shows them. `machine`: the one that it runs on, "" for this one.
    """

    rank: RankId
    process: RunningPython
    samples: list[Sample] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    problem: str = ""
    own: Sequence[SpiedFrame] = ()
    machine: str = ""

    @property
    def lacks_py_spy(self) -> bool:
        """Whether it has not been looked at because there is no py-spy."""
        return self.problem == NO_PY_SPY

    @property
    def has_begun(self) -> bool:
        """Whether it runs its program: before that it listens, and waits for a debugger."""
        files = {path for sample in self.samples for path, *_ in sample.files}
        return not any(path.endswith(BEFORE_THE_PROGRAM) for path in files)

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

    A process without a number gets the lowest free one. Of several, one that has ended counts, too.
    """
    ended = [pid for pid in pids if not procfs.runs(pid)]
    live = [pid for pid in pids if pid not in ended]
    found = ranks_among(live or pids)
    numbers = [process.place.rank for process in found]
    found += [RunningPython(pid, OLDEST_PYTHON) for pid in ended if live]
    numbers += [None for _ in found[len(numbers) :]]
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
    return _told_of(ranks, time.monotonic() - began)


def evidence_of(ranks: Sequence[OutsideRank], interval: float = INTERVAL_S) -> Evidence:
    """Return what has been seen of these ranks; `interval`: seconds between two looks."""
    return Evidence({one.rank: _told(one) for one in ranks}, interval)


async def verdict_on(ranks: Sequence[OutsideRank]) -> tuple[Verdict, list[str]]:
    """Look at these ranks and judge them; what NCCL itself says, as lines of evidence."""
    by_ras: list[str] = []
    began = time.monotonic()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_nccl, ranks, by_ras)
        evidence = await look(ranks)
        verdict = judge(evidence)
        if is_doubtful(verdict, evidence):
            await anyio.sleep(AGAIN_AFTER_S)
            await _look_once(ranks)
            verdict = judge(_told_of(ranks, time.monotonic() - began))
    return verdict, by_ras


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
    if not one.process.runs:
        one.problem = ENDED
        return
    async with spies:
        try:
            threads = threads_in(await _dump_or_ask(pid, silent=one.problem == SILENT))
        except (NoDump, PeerFault) as error:
            one.problem = str(error)
            return
    one.own = own_frames(threads, pid)
    # One after the other: threads of ours would read the same sources at once.
    one.samples.append(await anyio.to_thread.run_sync(_sample_of, threads, one, limiter=readers))


async def _dump_or_ask(pid: int, *, silent: bool) -> bytes:
    """Return a dump of py-spy's, or what a rank of `dap-mux run` tells. Raises NoDump.

    `silent`: it has not answered before, and is not asked again.
    """
    py_spy = find_py_spy(pid)
    try:
        if py_spy is None:
            raise NoDump(NO_PY_SPY)
        return await dump(py_spy, pid)
    except NoDump:
        if silent:
            raise NoDump(SILENT) from None
        asked = await ask_rank(pid)
        if asked is None:
            raise
        return asked


def _sample_of(threads: Any, one: OutsideRank) -> Sample:
    pid = one.process.pid

    def state_of(tid: int) -> Mapping[str, Any]:
        return thread_state(tid, str(procfs.folder(pid)))

    sample = sample_of(threads, pid, state_of, source_of, one.rank[1], polls)
    started = [Child(**each) for each in children(str(procfs.folder(pid)))]
    return replace(sample, children=started)


@cache
def source_of(path: str) -> Source | None:
    """Return a file's source; a process with other files is refused before.

    The process says what it is called: it may be a device that never ends.
    """
    try:
        with open_regular(Path(path)) as file:
            text = file.read(MAX_SOURCE_BYTES + 1)
    except (OSError, ValueError):
        return None
    return Source(text.decode("utf-8", "replace")) if len(text) <= MAX_SOURCE_BYTES else None


def _told_of(ranks: Sequence[OutsideRank], seconds: float) -> Evidence:
    looks = max((len(one.processes) for one in ranks), default=1)
    return evidence_of(ranks, max(INTERVAL_S, seconds / max(1, looks - 1)))


def _told(one: OutsideRank) -> RankEvidence:
    samples = one.samples if len(one.samples) >= ENOUGH else ()
    problem = "" if samples else one.problem or NO_LOOK
    code = None if one.process.runs else _exit_code(one.process.pid)
    return RankEvidence(one.rank, Standing(problem=problem, exit_code=code), samples, one.processes)


def _exit_code(pid: int) -> int | None:
    """Return that of a process for which its parent has not waited yet, as far as it is shown."""
    status = procfs.wait_status(pid)
    return None if status is None else os.waitstatus_to_exitcode(status)


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


# py-spy is found beside our own Python (the extra `py-spy`), in PATH, and beside the Python of a
# process, if nobody else could have put it there: see `startable`.

PY_SPY: Final = "py-spy"
DUMP_TIMEOUT_S: Final = 4.0  # s; it takes a tenth of one
MAX_DUMP_BYTES: Final = 8 << 20
NO_RIGHT: Final = (
    "this system does not allow reading it: run dap-mux as root, or in a container with the "
    "capability SYS_PTRACE"
)


class NoDump(DapMuxError):
    """Why there is no dump of a process."""


def find_py_spy(pid: int) -> str | None:
    """Return py-spy's path; a process may have one in its own environment."""
    for folder in (str(Path(sys.executable).parent), None):
        if found := shutil.which(PY_SPY, path=folder):
            return found
    beside = _environment_of(pid)
    found = shutil.which(PY_SPY, path=str(beside)) if beside is not None else None
    program = startable(Path(found)) if found else None
    return str(program) if program else None


async def dump(py_spy: str, pid: int) -> bytes:
    """Return what it prints of a process's threads. Raises NoDump."""
    command = [py_spy, "dump", "--json", "--nonblocking", "--locals", "--pid", str(pid)]
    try:
        with anyio.fail_after(DUMP_TIMEOUT_S):
            done = await anyio.run_process(
                command, stdin=subprocess.DEVNULL, check=False, start_new_session=True
            )
    except TimeoutError:
        raise NoDump(f"py-spy did not answer within {DUMP_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise NoDump(f"cannot start {py_spy}: {error.strerror}") from None
    if done.returncode:
        raise NoDump(_reason(done.stderr.decode("utf-8", "replace")))
    if len(done.stdout) > MAX_DUMP_BYTES:
        raise NoDump(f"py-spy printed {len(done.stdout) >> 20} MB")
    return done.stdout


ASK_TIMEOUT_S: Final = 2.0  # s; four threads at work on a busy machine keep it for one
SILENT: Final = (
    f"it did not tell its stacks within {ASK_TIMEOUT_S:g} s: it is stopped, it is very busy, or a "
    "library keeps Python's lock (GIL)"
)


async def ask_rank(pid: int) -> bytes | None:
    """Return what a rank of `dap-mux run` says of its threads, None where it cannot be asked.

    For that nobody need be allowed to read its memory (`dap_mux.rank.stack_answers`). Raises NoDump
    where it does not answer.
    """
    path = procfs.unix_socket(pid, STACKS)
    if not path:
        return None
    told = bytearray()
    try:
        with anyio.fail_after(ASK_TIMEOUT_S):
            async with await anyio.connect_unix(path) as stream:
                async for part in stream:
                    told += part
                    if len(told) > MAX_DUMP_BYTES:
                        raise NoDump("it says too much of its stacks")
    except TimeoutError:
        raise NoDump(SILENT) from None
    except (OSError, anyio.BrokenResourceError):
        return None
    return bytes(told)


def _reason(said: str) -> str:
    if "ermission" in said or "not permitted" in said:
        return NO_RIGHT
    lines = [line.removeprefix("Error: ") for line in said.splitlines() if line.strip()]
    return one_line(f"py-spy: {lines[0]}" if lines else "py-spy failed with no error message")


def _environment_of(pid: int) -> Path | None:
    """Return where the scripts of a process's environment are, by its first argument."""
    words = procfs.command_line(pid) or ()
    path = Path(words[0]) if words else Path()
    return path.parent if path.is_absolute() else None


# What NCCL itself knows of the job, by `ncclras` (NCCL's RAS).

_NCCL_RAS: Final = "ncclras"
_NCCL_LIBRARY: Final = b"libnccl"
_NCCL_ADDRESS: Final = "NCCL_RAS_ADDR"
_NCCL_TIMEOUT_S: Final = 3
"""It waits so long for ranks that do not answer."""
_MAX_NCCL_BYTES: Final = 32 << 20


async def ask_nccl(ranks: Sequence[OutsideRank], lines: list[str]) -> None:
    """Add lines of evidence, none where the job has no NCCL or that does not answer."""
    said = await _ask_ras([one.process.pid for one in ranks])
    if said is None:
        return
    try:
        report = read_report(said)
    except PeerFault as error:
        lines.append(str(error))
    else:
        lines += ras_lines(report, {one.process.pid: one.rank[1] for one in ranks})


async def _ask_ras(pids: Sequence[int]) -> bytes | None:
    """Return what it prints of the job of these processes; None without NCCL, or no answer."""
    program = shutil.which(_NCCL_RAS)
    if program is None or not any(map(_has_nccl, pids)):
        return None
    command = [program, "-f", "json", "-t", str(_NCCL_TIMEOUT_S), *_address(pids[0])]
    with suppress(OSError), anyio.move_on_after(_NCCL_TIMEOUT_S + 1):
        done = await anyio.run_process(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        if done.returncode == 0 and len(done.stdout) <= _MAX_NCCL_BYTES:
            return done.stdout
    return None


def _has_nccl(pid: int) -> bool:
    with suppress(OSError):
        return _NCCL_LIBRARY in procfs.mappings(pid)
    return False


def _address(pid: int) -> list[str]:
    host, colon, port = procfs.environ(pid).get(_NCCL_ADDRESS, "").rpartition(":")
    return ["-h", host, "-p", port] if colon and host and port.isdecimal() else []
