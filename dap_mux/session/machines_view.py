"""Looks at ranks of other machines from outside: `why ssh:node1 ssh:node2`, `why slurm:4711`.

Each machine runs `dap_mux/rank/outside/host_look.py`, which looks at the ranks there. What it
prints is untrusted; put together, it is the same evidence as that of ranks of this machine.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Final, TypeAlias

import anyio
import msgspec
from msgspec import Meta, Struct, structs

from dap_mux.cluster.endpoints import read_endpoint
from dap_mux.cluster.machines import ANSWER_WITHIN_S, Machine, OpenSource, run_on
from dap_mux.cluster.python_process import RunningPython
from dap_mux.cluster.records import DEFAULT_GROUP
from dap_mux.pure.errors import DapMuxError, NothingToConnect, PeerFault, UsageError
from dap_mux.pure.grouping import grouped
from dap_mux.pure.insight.why.evidence import Process, Sample
from dap_mux.pure.insight.why.py_spy import Source, SpiedThread, sample_of
from dap_mux.pure.insight.why.variables import own_frames
from dap_mux.pure.printable import one_line
from dap_mux.pure.rank_sets import fold
from dap_mux.rank.outside import program
from dap_mux.rank.outside.host_look import MARK
from dap_mux.rank.outside.python_memory import NO_RIGHT
from dap_mux.session.outside_view import INTERVAL_S, MAX_SOURCE_BYTES, OutsideRank
from dap_mux.system import procfs

MAX_TEXT: Final = 200
MAX_LINE: Final = 400
MAX_RANKS: Final = 1 << 14
UNSEEN: Final = "it is on no machine that has answered"
MAX_NUMBER: Final = 1 << 31
MAX_JOBS_SHOWN: Final = 8
SLURM: Final = "SLURM"
Sources: TypeAlias = Sequence[OpenSource]
Number = Annotated[int, Meta(ge=0, lt=MAX_NUMBER)]


class KnownThread(Struct, frozen=True):
    """A thread as the system shows it; fields as in `Thread`."""

    tid: int = 0
    state: str = ""
    system_call: str = ""
    file: str = ""
    cpu: float = 0.0
    switches: int = 0


class Look(Struct, frozen=True):
    """A process at one moment. `sockets`: both ends of each, as the kernel prints them."""

    threads: list[SpiedThread]
    state: str
    at: float
    cpu: float = 0.0
    sockets: dict[str, tuple[str, str]] = {}
    switches: dict[int, int] = {}
    states: dict[int, KnownThread] = {}


class SeenRank(Struct, frozen=True):
    """A rank's process. `listens`: it has started debugpy's adapter. `problem`: why no stack.

    `size`: how many ranks the job has, as far as the launcher has said it.
    """

    pid: Number
    rank: Number
    size: Number | None
    launcher: str | None
    job: str
    program: str
    listens: bool
    problem: str
    looks: list[Look]


class Answer(Struct, frozen=True):
    """The answer of a machine. `more`: ranks left out; `hidden`: those in other networks.

    `adapters`: whether any debugpy listens there.
    """

    ranks: list[SeenRank]
    sources: dict[str, str]
    more: int
    hidden: int
    adapters: bool


@dataclass(frozen=True)
class Found:
    """A rank and its machine. `parsed`: the machine's sources, as far as they were needed."""

    machine: Machine
    seen: SeenRank
    answer: Answer
    parsed: dict[str, Source]


@dataclass(frozen=True)
class MachinesView:
    """All ranks of one job, and `lines` about what has not been seen.

    `listens`: their debugpy can be asked; `interval`: seconds between two looks.
    """

    ranks: list[OutsideRank]
    lines: list[str]
    listens: bool
    interval: float = INTERVAL_S


def open_sources(endpoints: Sequence[str]) -> Sources | None:
    """Return the sources of endpoints whose ranks can be looked at without a port of theirs.

    None if any is another, or says where its ranks listen. Raises `UsageError`.
    """
    found: list[OpenSource] = []
    for each in endpoints:
        source = read_endpoint(each).source
        if not isinstance(source, OpenSource) or source.names_ports:
            return None
        found.append(source)
    return found


async def look_at_machines(sources: Sources, job: str = "") -> MachinesView:
    """Look at the ranks of all machines at once.

    `job`: the name of one of several. Raises `DapMuxError` where there is none.
    """
    machines = await _machines_of(sources)
    said = await run_on(machines, lambda one: program(dict(one.only), everybody=one.everybody))
    return await anyio.to_thread.run_sync(evidence_in, said, job)


def evidence_in(said: Mapping[Machine, bytes | DapMuxError], job: str) -> MachinesView:
    """Put together what machines have printed. Raises `DapMuxError` where there is no rank."""
    found: list[Found] = []
    lines: list[str] = []
    adapters = False
    for machine, text in said.items():
        try:
            answer = read_answer(text)
        except DapMuxError as error:
            lines.append(one_line(f"{machine.name}: {error}")[:MAX_LINE])
            continue
        parsed: dict[str, Source] = {}
        found += [Found(machine, each, answer, parsed) for each in answer.ranks]
        lines += _left_out(machine, answer)
        adapters = adapters or answer.adapters
    if not found and adapters:  # ranks without a number, perhaps
        return MachinesView([], lines, listens=True)
    if not found:
        raise NothingToConnect("; ".join(lines))
    of_job = one_job(found, job)
    ranks = [_outside_rank(one) for one in of_job]
    lines += _unread(of_job, ranks)
    interval = max(map(_interval, ranks))
    return MachinesView([*ranks, *_unseen(of_job)], lines, _all_listen(of_job), interval)


def _unseen(of_job: Sequence[Found]) -> Iterator[OutsideRank]:
    """Yield the job's other ranks: who waits for one of them waits for a rank."""
    size = max(one.seen.size or 0 for one in of_job)
    for number in {*range(min(size, MAX_RANKS))} - {one.seen.rank for one in of_job}:
        yield OutsideRank((DEFAULT_GROUP, number), RunningPython(0, (0, 0)), problem=UNSEEN)


def _interval(one: OutsideRank) -> float:
    """Return the seconds between two looks at a rank, where that is likely."""
    times = [process.at for process in one.processes]
    between = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0.0
    return min(max(INTERVAL_S, between), ANSWER_WITHIN_S)


async def _machines_of(sources: Sources) -> list[Machine]:
    found: dict[str, Machine] = {}
    for source in sources:
        for machine in await source.machines():
            found.setdefault(machine.name, machine)
    return [*found.values()]


def read_answer(text: bytes | DapMuxError) -> Answer:
    """Read what a machine has printed. Raises `DapMuxError`."""
    if isinstance(text, DapMuxError):
        raise text
    _, mark, rest = text.rpartition(f"\n{MARK}".encode())
    if not mark:
        raise PeerFault("its Python has printed something else than was asked for")
    try:
        return msgspec.json.decode(rest, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PeerFault(f"malformed answer: {error}") from None


def _left_out(machine: Machine, answer: Answer) -> Iterator[str]:
    if answer.hidden:
        yield (
            f"{machine.name}: ranks in networks of their own are not looked at "
            f"({answer.hidden}): run dap-mux inside them"
        )
    if answer.more:
        yield f"{machine.name}: {answer.more} more ranks are not looked at"
    if not answer.ranks and not answer.hidden:
        others = ""
        if machine.everybody:
            others = "; those of its other containers are with `shareProcessNamespace: true`"
        yield f"{machine.name}: no rank of a distributed Python job is seen there{others}"


# One job of several


def one_job(found: Sequence[Found], wanted: str) -> list[Found]:
    """Return the ranks of the job of that name, or of the only one.

    Raises `UsageError` for several, and where two processes of one have the same number.
    """
    jobs = grouped((_shown(one.seen.job), one) for one in found)
    if wanted:
        if wanted not in jobs:
            raise UsageError(f"--job: no job {wanted}; there are {_listed(jobs)}")
        chosen = jobs[wanted]
    else:
        chosen = [*found]
    counts = Counter(one.seen.rank for one in chosen)
    twice = next((rank for rank, count in counts.items() if count > 1), None)
    if twice is None:
        return chosen
    if not wanted and len(jobs) > 1:
        raise UsageError(f"several jobs run there: {_listed(jobs)}; choose one by --job=NAME")
    first, second, *_ = (one for one in chosen if one.seen.rank == twice)
    raise UsageError(
        f"duplicate rank {twice}: process {first.seen.pid} on {first.machine.name} and process "
        f"{second.seen.pid} on {second.machine.name}; name the machines of one job only"
    )


def _listed(jobs: Mapping[str, Sequence[Found]]) -> str:
    shown = [
        f"{name} (rank{'s' * (len(of) > 1)} {_folded(of)}, {_shown(of[0].seen.program)})"
        for name, of in [*jobs.items()][:MAX_JOBS_SHOWN]
    ]
    return ", ".join([*shown, *(["…"] if len(jobs) > MAX_JOBS_SHOWN else [])])


def _folded(of: Iterable[Found]) -> str:
    return fold((DEFAULT_GROUP, one.seen.rank) for one in of)


def _shown(text: str) -> str:
    return one_line(text)[:MAX_TEXT]


def _all_listen(found: Sequence[Found]) -> bool:
    """Whether they are the ranks to which the endpoints lead, and a debugger could ask them all.

    That is one on each machine, or each task of SLURM's.
    """
    alone = len({one.machine.name for one in found}) == len(found)
    return all(one.seen.listens and (alone or one.seen.launcher == SLURM) for one in found)


# Evidence


def _outside_rank(one: Found) -> OutsideRank:
    seen = one.seen
    made = OutsideRank(
        (DEFAULT_GROUP, seen.rank),
        RunningPython(seen.pid, (0, 0)),
        problem=_shown(seen.problem),
        machine=one.machine.name,
    )
    for look in seen.looks:
        made.processes.append(_process(one, look))
        if look.threads:
            made.samples.append(_sample(one, look))
            made.own = own_frames(look.threads, seen.pid)
    return made


def _sample(one: Found, look: Look) -> Sample:
    def state_of(tid: int) -> dict[str, object]:
        return structs.asdict(look.states.get(tid, KnownThread(tid)))

    def source_of(path: str) -> Source | None:
        text = one.answer.sources.get(path, "")
        if not text or len(text) > MAX_SOURCE_BYTES:
            return None
        if path not in one.parsed:
            one.parsed[path] = Source(text)
        return one.parsed[path]

    return sample_of(look.threads, one.seen.pid, state_of, source_of, one.seen.rank)


def _process(one: Found, look: Look) -> Process:
    sockets = {
        name: (_end(local, one.machine), _end(remote, one.machine))
        for name, (local, remote) in look.sockets.items()
    }
    return Process(one.seen.pid, look.state[:1], look.cpu, sockets, look.switches, at=look.at)


def _end(text: str, machine: Machine) -> str:
    """Return an address as `Process` has it; that of a loopback is one of its machine only."""
    try:
        host, port = procfs.decode_host(text), int(text.rpartition(":")[2], 16)
    except (ValueError, struct.error):
        return ""
    return f"{host}:{port}" + (f" on {machine.name}" if ip_address(host).is_loopback else "")


def _unread(found: Sequence[Found], ranks: Sequence[OutsideRank]) -> Iterator[str]:
    """Say whose stacks could not be read, and what would allow it."""
    why: dict[str, list[Found]] = {}
    for one, rank in zip(found, ranks, strict=True):
        if not rank.samples and rank.problem:
            right = f"; {one.machine.right}" if rank.problem.startswith(NO_RIGHT) else ""
            why.setdefault(f"{rank.problem}{right}", []).append(one)
    for text, of in why.items():
        yield f"rank{'s' * (len(of) > 1)} {_folded(of)}: {text}"
