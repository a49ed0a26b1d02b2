"""Turns the files that a dead job has left behind into evidence for the verdicts.

Files do not tell where a rank was that waited for nothing, nor when they were written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.stack_tree import Stack
from dap_mux.pure.insight.why.evidence import (
    Call,
    Collective,
    Evidence,
    Names,
    RankEvidence,
    Sample,
    Standing,
    Thread,
)
from dap_mux.pure.insight.why.recorder_dump import Dump, Entry, NotADump, Running
from dap_mux.pure.insight.why.verdict import place, seconds
from dap_mux.pure.insight.why.waits import TORCH_CALLS
from dap_mux.pure.printable import one_line
from dap_mux.pure.rank_sets import RankId, name_ranks

MAIN: Final = "MainThread"
GROUP: Final = "job"
LOOKS: Final = 2
"""A rank that has ended stands still; two equal samples say so."""
MAX_MESSAGE: Final = 300
MAX_LINES: Final = 8
FAILED: Final = 1
"""Python's exit code after an exception."""
NO_DUMP: Final = "it has left no dump"
_CONSEQUENCE: Final = re.compile(
    r"time[d]? ?out|connection (?:closed|reset|refused)|broken pipe|sigterm|signal 15|watchdog"
    r"|heartbeat|abort|detected mismatch between collectives",
    re.IGNORECASE,
)


def is_consequence(message: str) -> bool:
    """Whether an exception's words say that another rank was missing, or ended this one."""
    return _CONSEQUENCE.search(message) is not None


@dataclass(frozen=True)
class Failure:
    """An exception that a rank has ended with, as torchelastic's error.json has it; `at`: when."""

    message: str
    at: int


@dataclass
class Remains:
    """The files' contents by rank. `running`: collectives that logs name."""

    dumps: dict[int, Dump] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)
    running: Running = field(default_factory=lambda: Running({}, {}))

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.ranks)

    @property
    def first_failure(self) -> int | None:
        """The rank that failed first, unless that was for want of another one."""
        failures = self.failures.items()
        causes = [rank for rank, one in failures if not is_consequence(one.message)]
        return min(causes, key=lambda rank: (self.failures[rank].at, rank), default=None)

    @property
    def ranks(self) -> list[int]:
        """All that have left something, and those that dumps name as members of their job."""
        members = {rank for dump in self.dumps.values() for rank in dump.world}
        logs = (*self.running.own, *self.running.by_others)
        return sorted({*members, *self.dumps, *self.failures, *logs})


def read_failure(data: bytes) -> Failure:
    """Read an error.json of torchelastic's. Raises NotADump."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise NotADump("an error.json that is no JSON") from None
    message: Any = said.get("message") if isinstance(said, dict) else None
    more: Any = {}
    if isinstance(message, dict):
        more, message = message.get("extraInfo"), message.get("message")
    if not isinstance(message, str):
        raise NotADump("an error.json without a message, as torchelastic's have")
    at = str(more.get("timestamp", "")) if isinstance(more, dict) else ""
    first = message.strip().partition("\n")[0]
    return Failure(
        one_line(first[:MAX_MESSAGE]), int(at) if re.fullmatch(r"[0-9]{1,12}", at) else 0
    )


def evidence_of(remains: Remains) -> Evidence:
    """Return it as of ranks that still run, but for the one that failed first."""
    return Evidence({_id(rank): _rank(rank, remains) for rank in remains.ranks})


def _id(rank: int) -> RankId:
    return (GROUP, rank)


def _rank(rank: int, remains: Remains) -> RankEvidence:
    dump, running = remains.dumps.get(rank), remains.running.of(rank)
    if rank == remains.first_failure:
        return RankEvidence(_id(rank), Standing("exited", exit_code=FAILED))
    if dump is None and running is None:
        failure = remains.failures.get(rank)
        problem = f"it has failed: {failure.message}" if failure else NO_DUMP
        return RankEvidence(_id(rank), Standing(problem=problem))
    return RankEvidence(_id(rank), Standing(), [_sample(rank, dump, running)] * LOOKS)


def _sample(rank: int, dump: Dump | None, running: Collective | None) -> Sample:
    entries = dump.entries if dump is not None else ()
    collectives = [entry.collective for entry in entries]
    waits, stack = _waits(entries)
    if waits is None and running is not None:
        waits = running
        collectives.append(running)
    names = Names()
    frames = [
        names.place(each.path, each.function, each.line, library=each.library) for each in stack
    ]
    call = Call("", f"{TORCH_CALLS[1]}{waits.kind}") if waits is not None else None
    main = Thread(MAIN, main=True, frames=frames, call=call)
    return Sample([*names.files], [*names.functions], [main], collectives, "on", rank)


def _waits(entries: Iterable[Entry]) -> tuple[Collective | None, Stack]:
    """Return the oldest collective that is not over, which holds up the others; and its place."""
    found = next((entry for entry in entries if not entry.is_over), None)
    return (found.collective, found.stack) if found is not None else (None, ())


def more_evidence(remains: Remains, suspects: Iterable[int]) -> Iterator[str]:
    """Yield what the verdict itself does not say: last calls, time-outs and other failures."""
    for rank in [*suspects][:MAX_LINES]:
        dump = remains.dumps.get(rank)
        if dump is not None and _waits(dump.entries)[0] is None:
            yield f"rank {rank}'s last call on record is {_last(dump)}"
    yield from _failures(remains)
    timeouts = {
        entry.collective.timeout
        for dump in remains.dumps.values()
        for entry in dump.entries
        if not entry.is_over and entry.collective.timeout
    }
    if timeouts:
        yield f"their time-out was {seconds(min(timeouts))}"


def _last(dump: Dump) -> str:
    if not dump.entries:
        return "none: nothing was recorded"
    entry = dump.entries[-1]
    one = entry.collective
    own = [frame for frame in entry.stack if not frame.library]
    where = f" at {place(own[-1])}" if own else ""
    return f"{one.kind} #{one.number} of group {one.group}{where}, which it has completed"


def _failures(remains: Remains) -> Iterator[str]:
    first = remains.first_failure
    alike = grouped(
        (failure.message, _id(rank)) for rank, failure in remains.failures.items() if rank != first
    )
    for message, ranks in [*alike.items()][:MAX_LINES]:
        yield f"{name_ranks(ranks, GROUP)} ended with {message}"


def merged(dumps: Iterable[Dump]) -> Dump:
    """Return the dumps of one rank's recorders as one, in the order of time."""
    entries: list[Entry] = []
    members: dict[str, Any] = {}
    for dump in dumps:
        entries += dump.entries
        members.update(dump.members)
    return Dump(sorted(entries, key=lambda one: one.at), members)
