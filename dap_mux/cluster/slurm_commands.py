"""Queries SLURM's commands about a job: its state, steps, layout and remaining time.

The output is plain text, by format strings that have existed for ten years: not every build
supports JSON.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from dap_mux.errors import DapMuxError, NothingToConnect
from dap_mux.printable import printable
from dap_mux.tunnel.children import CommandResult, run_command

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
