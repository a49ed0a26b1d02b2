"""A bug as a running job of eight real ranks, and what a plain user has of it: stacks and logs."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from dap_mux.system import procfs
from tests.agent_score.expected import RANKS, Bug
from tests.support.processes.commands import Command, User
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until
from tests.why_foreign.__main__ import AT_REST, LOOK_S, RESTED, cpu_of, rank_pids
from tests.why_score.__main__ import engines
from tests.why_score.ranks import jobs

STARTS_S: Final = 120.0
RESTS_S: Final = 240.0
SLOW_S: Final = 15.0
"""How long a job that is slow has made steps when it is looked at."""
LOGS_S: Final = 25.0
"""How long a program that prints wrong values is left to print."""
ON_LOOPBACK: Final = "127.0.0.1"
PY_SPY: Final = Path(sys.executable).with_name("py-spy")
Json = dict[str, Any]


class Running(NamedTuple):
    """A job under `dap-mux run`, and its session's address."""

    user: User
    run: Command
    address: str
    program: Path

    def pids(self) -> list[int]:
        """The ranks' processes, by rank."""
        found = rank_pids(str(self.program), self.user.environ["HOME"])
        return sorted(found, key=lambda pid: int(procfs.environ(pid).get("RANK", "0")))

    def logs(self) -> dict[int, str]:
        """What each rank has printed; of a launcher's, what it has shown of all, as rank -1."""
        folder = self.user.folder / "logs"
        by_rank = {int(each.stem[5:]): each.read_text("utf-8") for each in folder.glob("rank-*")}
        return by_rank or {-1: f"{self.run.out}\n{self.run.err}"}

    async def dumps(self) -> dict[int, str]:
        """What py-spy prints of each rank that lives."""
        found = {}
        for pid in self.pids():
            rank = int(procfs.environ(pid).get("RANK", "-1"))
            process = await asyncio.create_subprocess_exec(
                *(str(PY_SPY), "dump", "--full-filenames", "--pid", str(pid)),
                stdout=asyncio.subprocess.PIPE,
            )
            found[rank] = (await process.communicate())[0].decode()
        return found


@asynccontextmanager
async def running(bug: Bug, *, waits: bool) -> AsyncIterator[Running]:
    """Run a bug; `waits`: its ranks wait for a debugger, else it has come to rest."""
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="score-")))
        user = User(place)
        stack.push_async_callback(user.close)
        program = bug.path
        environ = {"OMP_NUM_THREADS": "1", "TMPDIR": str(user.folder)}
        run = await user.start(*_words(bug, program, waits=waits), env=environ)
        session = await run.session()
        job = Running(user, run, f"{session['host']}:{session['port']}", program)
        await until(lambda: len(job.pids()) >= RANKS, within=STARTS_S, what="eight ranks")
        if waits:
            await until(lambda: _wait(job), within=STARTS_S, what="ranks that wait")
        else:
            await settled(job, rests=bug.symptom == "hang")
        yield job


def _words(bug: Bug, program: Path, *, waits: bool) -> Sequence[str]:
    ports = ("--base-port", str(free_ports(2 * RANKS)), "--log-dir", "logs")
    start = ("run", *ports, "--wait" if waits else "--no-wait")
    if bug.launcher == "python":
        return (*start, "-n", str(RANKS), str(program))
    torchrun = jobs(engines())["gloo"].python.with_name("torchrun")
    port = f"--master-port={free_ports(1)}"
    return (*start, "--", str(torchrun), "--nproc-per-node", str(RANKS), port, str(program))


def _wait(job: Running) -> bool:
    """Whether all ranks are asleep: they wait for a debugger."""
    stats = [procfs.stat(pid) for pid in job.pids()]
    return len(stats) >= RANKS and all(one is not None and one.state == "S" for one in stats)


async def settled(job: Running, *, rests: bool) -> None:
    """Wait until the ranks use no processor and print nothing, if they rest at all.

    On a busy machine a job that still makes steps may use no more than one that rests.
    """
    if not rests:
        await until(lambda: "step" in str(job.logs()), within=STARTS_S, what="a first step")
    deadline = time.monotonic() + (RESTS_S if rests else SLOW_S)
    used, told, at_rest = cpu_of(job.pids()), job.logs(), 0
    while at_rest < RESTED and time.monotonic() < deadline and job.pids():
        await asyncio.sleep(LOOK_S)
        before, used = used, cpu_of(job.pids())
        said, told = told, job.logs()
        still = rests and said == told and used - before < AT_REST * LOOK_S
        at_rest = at_rest + 1 if still else 0


async def printed(job: Running) -> dict[int, str]:
    """What a job prints that runs to its end, or for a while."""
    with suppress(AssertionError):
        await until(lambda: not job.pids(), within=LOGS_S, what="the end")
    return job.logs()
