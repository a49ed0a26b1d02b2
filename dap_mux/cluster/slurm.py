"""The ranks of a SLURM job: `slurm:JOBID[.STEP][:PORT][+RANKS][,ssh]`."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from math import inf
from typing import Final

import anyio

from dap_mux.cluster.machines import Machine
from dap_mux.cluster.records import FIRST_PORT, LAST_PORT, RankRecord
from dap_mux.cluster.source import (
    BY_CHOICE,
    Description,
    Notify,
    OnReached,
    SourceSpec,
    reach_directly,
)
from dap_mux.cluster.ssh import RIGHT_ON_A_HOST, machine_by_ssh, reach_by_ssh
from dap_mux.cluster.tunnel import CommandResult, run_command
from dap_mux.pure.errors import DapMuxError, NothingToConnect, UsageError
from dap_mux.pure.printable import printable

WAITING_STATES = ("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")
RUNNING_STATES = (
    "RUNNING CONFIGURING SUSPENDED STOPPED SIGNALING RESIZING STAGE_OUT COMPLETING".split()
)
_LEFT = re.compile(r"(?:(?P<d>\d+)-)?(?:(?P<h>\d+):)?(?P<m>\d+):(?P<s>\d+)", re.ASCII)
_NODE = re.compile(r"Node \d+ \((?P<node>[^)]+)\), \d+ task\(s\):(?P<tasks>[ \d]*)", re.ASCII)
_ADDRESS = re.compile(r"\bNodeName=(?P<node>\S+) .*?\bNodeAddr=(?P<address>\S+)")
_NO_STEP = ("already completing or completed", "Invalid job id", "Invalid step")


class SlurmTrouble(DapMuxError):
    """A SLURM command could not be run, or failed."""


@dataclass(frozen=True, kw_only=True)
class SlurmJob:
    """One job, as the queue shows it; `state` and `reason` are SLURM's."""

    id: str
    state: str
    reason: str

    @property
    def waits(self) -> bool:
        """Whether it is queued, perhaps again."""
        return self.state in WAITING_STATES

    @property
    def runs(self) -> bool:
        """Whether it has nodes."""
        return self.state in RUNNING_STATES


@dataclass(frozen=True, kw_only=True)
class SlurmStep:
    """One running step of a job; `name`: `JOB.STEP`, `start`: its start time."""

    name: str
    nodes: str
    start: str
    program: str

    @property
    def number(self) -> str:
        """A number, `batch`, `extern` or `interactive`."""
        return self.name.rpartition(".")[2]


async def job_of(job: str) -> SlurmJob:
    """Return a job, also for a while after its end. Raises `NothingToConnect` if unknown."""
    out = await _output(
        "squeue", "-h", "-t", "all", "-j", job, "-o", "%i|%T|%r", none_if=("Invalid job id",)
    )
    rows = [line.split("|", 2) for line in out.splitlines() if line]
    if not rows:
        raise NothingToConnect(
            f"SLURM has no job {job} (it forgets a job some minutes after its end); "
            "`squeue --me` lists yours"
        )
    if len(rows) > 1:
        names = ", ".join(sorted(row[0] for row in rows))
        raise NothingToConnect(f"job {job} is an array: name one of {names}")
    id, state, reason = rows[0]
    return SlurmJob(id=id, state=state, reason=reason)


async def steps_of(job: str) -> list[SlurmStep]:
    """Return the running steps of a job; none if it has ended."""
    out = await _output("squeue", "-h", "-s", "-j", job, "-o", "%i|%N|%S|%j", none_if=_NO_STEP)
    rows = (line.strip().split("|", 3) for line in out.splitlines() if line.strip())
    return [
        SlurmStep(name=name, nodes=nodes, start=start, program=prog)
        for name, nodes, start, prog in rows
    ]


async def layout_of(step: SlurmStep) -> dict[int, str]:
    """Return the node of each task; {} if the step has just ended.

    `sattach --layout` only queries the controller; it does not attach to anything.
    """
    out = await _output("sattach", "--layout", step.name, none_if=_NO_STEP)
    tasks = {
        int(task): found["node"] for found in _NODE.finditer(out) for task in found["tasks"].split()
    }
    return dict(sorted(tasks.items()))


async def addresses_of(nodes: Iterable[str]) -> dict[str, str]:
    """Return the address that SLURM itself uses for each node."""
    names = sorted(set(nodes))
    out = await _output("scontrol", "-o", "show", "node", ",".join(names))
    found = {match["node"]: match["address"] for match in _ADDRESS.finditer(out)}
    return {name: found.get(name, name) for name in names}


async def first_node(nodes: str) -> str:
    """Return the first of a list in SLURM's short form: node1 for `node[1-2]`."""
    names = (await _output("scontrol", "show", "hostnames", nodes)).split()
    if not names:
        raise SlurmTrouble(f"scontrol names no node of {nodes}")
    return names[0]


async def nodes_of(job: str) -> tuple[str, list[str]]:
    """Return the number that SLURM gives a job's processes, and the job's nodes."""
    out = await _output("squeue", "-h", "-j", job, "-o", "%A|%N", none_if=("Invalid job id",))
    id, _, nodes = out.strip().partition("|")
    if not nodes:
        return id, []
    return id, (await _output("scontrol", "show", "hostnames", nodes)).split()


async def time_left(job: str) -> timedelta | None:
    """Return a job's remaining time; None without a limit, or without such a job."""
    answer = await _run("squeue", "-h", "-j", job, "-o", "%L")
    found = None if answer.code else _LEFT.fullmatch(answer.out.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (int(found[part] or 0) for part in "dhms")
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


async def _output(*words: str, none_if: Iterable[str] = ()) -> str:
    """Return what a command prints; '' if it fails with one of these messages.

    Raises `DapMuxError` for any other failure.
    """
    answer = await _run(*words)
    if answer.code == 0:
        return answer.out
    if any(each in answer.err for each in none_if):
        return ""
    lines = [printable(line) for line in answer.err.splitlines() if line.strip()]
    raise SlurmTrouble(f"{words[0]} failed: {lines[-1] if lines else 'no error message'}")


async def _run(*words: str) -> CommandResult:
    """Run a command. Raises `DapMuxError` if it cannot run or does not end."""
    if shutil.which(words[0]) is None:
        raise SlurmTrouble(
            f"{words[0]} is not installed, and dap-mux needs SLURM's commands; "
            "run it on a login node of the cluster"
        )
    return await run_command(words)


POLL_INTERVAL_S: Final = 5.0  # one small query to a controller that serves thousands
BATCH: Final = "batch"
_NAME: Final = re.compile(
    r"(?P<job>[1-9]\d*(?:_\d+)?)(?:\.(?P<step>\d+|batch|interactive))?"
    r"(?::(?P<port>\d+))?(?:\+(?P<ranks>[1-9]\d*))?(?P<ssh>,ssh)?",
    re.ASCII,
)


@dataclass(frozen=True, kw_only=True)
class Name:
    """A parsed endpoint. `step` "": the running one; `ranks`: of each task."""

    job: str
    step: str = ""
    port: int = FIRST_PORT
    ranks: int = 1
    by_ssh: bool = False
    names_ports: bool = False

    @classmethod
    def read(cls, word: SourceSpec) -> Name:
        """Parse an endpoint. Raises `UsageError`."""
        found = _NAME.fullmatch(word.rest)
        if found is None:
            raise UsageError(
                f"{word}: not a SLURM job; one looks like slurm:4711, slurm:4711.0 (a step), "
                "slurm:4711_2 (of an array), slurm:4711:6000 (rank 0's port), "
                "slurm:4711+8 (8 ranks in each task), slurm:4711,ssh (by ssh to each node)"
            )
        port = int(found["port"] or FIRST_PORT)
        if not 0 < port <= LAST_PORT:
            raise UsageError(f"{word}: {port} is not a port (1 to {LAST_PORT})")
        return cls(
            job=found["job"],
            step=found["step"] or "",
            port=port,
            ranks=int(found["ranks"] or 1),
            by_ssh=found["ssh"] is not None,
            names_ports=bool(found["port"] or found["ranks"]),
        )


def _spell(parts: Mapping[str, str]) -> str:
    return parts["job"] + (f".{parts['step']}" if parts["step"] else "")


# Each task of the step is a rank on the node that SLURM gave it, listening on PORT (5678) + rank.
# With `+RANKS` each task is a launcher of that many ranks, as torchrun is, in the order of tasks.
# With `,ssh` ranks listen on their node's loopback and are reached by one ssh to each node. SLURM
# is polled, so ranks that move, are requeued or start late are found. What its commands print is
# read by format strings that have existed for ten years: not every build supports JSON.
class Slurm:
    """A `Source`: the ranks of a job's step, as SLURM has placed them."""

    description = Description(
        help="slurm:JOBID",
        tunnels=BY_CHOICE,
        names=("job",),
        others=("step",),
        spell=_spell,
        count_needs_port=False,
    )
    lingers = inf  # a requeued job loses all of its ranks for a while

    def __init__(self, word: SourceSpec) -> None:
        self._name = Name.read(word)
        self._records: tuple[RankRecord, ...] = ()
        self._step = ""
        self.names_ports = self._name.names_ports

    async def machines(self) -> Sequence[Machine]:
        """Return the job's nodes."""
        job = await self._unfinished()
        id, nodes = await nodes_of(job.id)
        if not nodes:
            raise NothingToConnect(_why_none(job))
        step = self._name.step
        only = {"SLURM_JOB_ID": id, **({"SLURM_STEP_ID": step} if step.isdigit() else {})}
        if self._name.by_ssh:
            return [machine_by_ssh(node, only) for node in nodes]
        return [
            Machine(name=node, reach=partial(_on_node, id, node), only=only, right=RIGHT_ON_A_HOST)
            for node in nodes
        ]

    async def _unfinished(self) -> SlurmJob:
        job = await job_of(self._name.job)
        if not (job.runs or job.waits):
            raise NothingToConnect(
                f"job {job.id} has ended ({job.state}); submit it again with a longer time limit"
            )
        return job

    async def discover(self) -> Sequence[RankRecord]:
        """Return the ranks of the step; none while the job is queued or has no step."""
        job = await self._unfinished()
        self._records = await self._ranks_of(job)
        return self._records

    async def watch(self) -> AsyncIterator[Sequence[RankRecord]]:
        """Yield the ranks after each change; none once the job has ended."""
        shown = self._records
        while True:
            job = await self._present()
            if job is None:  # a job may be missing from the queue for a moment while it is requeued
                await anyio.sleep(POLL_INTERVAL_S)
                job = await self._present()
            self._records = await self._ranks_of(job) if job else ()
            if self._records != shown or job is None:
                shown = self._records
                yield shown
            if job is None:
                return
            if not shown:
                raise NothingToConnect(_why_none(job))
            await anyio.sleep(POLL_INTERVAL_S)

    def reach(
        self, records: Sequence[RankRecord], changed: OnReached, tell: Notify
    ) -> AbstractAsyncContextManager[None]:
        """Reach them directly, or by ssh to their node."""
        if self._name.by_ssh:
            return reach_by_ssh(records[0].host, records, changed, tell)
        return reach_directly(records, changed, tell)

    async def _present(self) -> SlurmJob | None:
        """Return the job, None once it has ended; SLURM forgets it some minutes later."""
        try:
            job = await job_of(self._name.job)
        except NothingToConnect:
            return None
        return job if job.runs or job.waits else None

    async def _ranks_of(self, job: SlurmJob) -> tuple[RankRecord, ...]:
        step = None if job.waits else self._pick(await steps_of(self._name.job))
        if step is None:
            return tuple(replace(record, waits=_why_none(job)) for record in self._records)
        self._step = step.number
        return await self._placed(step)

    def _pick(self, steps: Sequence[SlurmStep]) -> SlurmStep | None:
        """Return the step that the user named, the only one, or the one followed so far."""
        wanted = [step for step in steps if step.number == (self._name.step or self._step)]
        if wanted or self._name.step:
            return wanted[0] if wanted else None
        running = [step for step in steps if step.number.isdigit()]
        if len(running) > 1:
            each = " and ".join(f"{step.name} ({step.program})" for step in running)
            raise NothingToConnect(f"job {self._name.job} runs several steps, {each}: name one")
        return running[0] if running else None

    async def _placed(self, step: SlurmStep) -> tuple[RankRecord, ...]:
        """One record for each rank, at the address that SLURM itself reaches its node by."""
        if step.number.isdigit():
            tasks = await layout_of(step)
        else:
            tasks = {0: await first_node(step.nodes)}  # the script itself, on one node
        if not tasks:
            return ()
        addresses, each = await addresses_of(tasks.values()), self._name.ranks
        self._refuse_beyond(len(tasks) * each)
        return tuple(
            RankRecord(
                host=addresses[node],
                port=self._name.port + rank,
                rank=rank,
                world_size=len(tasks) * each,
                incarnation=f"{step.name} {step.start}",
            )
            for task, node in tasks.items()
            for rank in range(task * each, (task + 1) * each)
        )

    def _refuse_beyond(self, count: int) -> None:
        last = self._name.port + count - 1
        if last > LAST_PORT:
            raise UsageError(
                f"slurm:{self._name.job}: {count} ranks from port {self._name.port} on need port "
                f"{last}, and the last one is {LAST_PORT}"
            )


def _on_node(job: str, node: str, script: str) -> list[str]:
    """Return the command that runs a shell's script on a node of a job, beside its steps."""
    where = [f"--jobid={job}", f"--nodelist={node}", "--nodes=1", "--ntasks=1"]
    return ["srun", "--overlap", "--quiet", "--mpi=none", *where, "sh", "-c", script]


def _why_none(job: SlurmJob) -> str:
    if job.waits:
        return f"job {job.id} waits in SLURM's queue ({job.reason})"
    return f"job {job.id} has no running step (srun starts one)"
