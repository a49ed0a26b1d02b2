"""`why pid:` and `stacks pid:` of jobs that torchrun and mpirun have started without dap-mux.

The culprit is named without a debugger; `--attach` then brings one into that process alone. When
the fault is over the job ends with the result that it has undisturbed.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from dap_mux.system import procfs
from tests.launchers.launching import cast
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, Command, User, listed
from tests.support.processes.mpi import mpi_environ
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]  # verdicts are timed
SCRIPTS: Final = Path(__file__).parent / "scripts"
RANKS: Final = 4
RESULT: Final = sum(step + rank for step in range(6) for rank in range(RANKS))
"""The sum that each rank computes."""
CULPRIT: Final = 2
VERDICT_WITHIN: Final = 10.0  # s
STARTS: Final = 3 * LIMIT
LAUNCHERS: Final = {
    "torch": (["torchrun", "--nproc-per-node", "4"], "unprepared_torch.py", "all_reduce", 4),
    "openmpi": (["mpirun", "--oversubscribe", "-n", "4"], "unprepared_mpi.py", "allreduce", 1),
}
DEBUGPY: Final = b"pydevd_attach_to_process"
"""In the path of the library by which debugpy comes into a process."""
Json = dict[str, Any]


class Job:
    """A launcher and its four ranks, none of which has heard of dap-mux."""

    def __init__(self, user: User, engine: str) -> None:
        self._user = user
        self._log = user.folder / "job.log"
        self.command, self.script, self.collective, self.numbers = LAUNCHERS[engine]
        self._programs = environment(engine)

    async def start(self, fault: str) -> None:
        words = [str(self._programs / self.command[0]), *self.command[1:]]
        if self.command[0] == "torchrun":
            words += ["--master-port", str(free_ports(1))]
        else:
            words.append(str(self._programs / "python"))
        with self._log.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *words,
                str(SCRIPTS / self.script),
                fault,
                env={
                    **self._user.environ,
                    **mpi_environ(self._user.folder),
                    "OMP_NUM_THREADS": "1",
                },
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._user.others.append(self.process)

    @property
    def output(self) -> str:
        return self._log.read_text("utf-8")

    async def says(self, text: str, times: int = 1) -> None:
        """Wait until its ranks have printed this so many times."""
        await until(lambda: self.output.count(text) == times, within=STARTS, what=text)

    async def ends(self) -> None:
        """Wait until it has ended, as it does undisturbed."""
        await asyncio.wait_for(self.process.wait(), STARTS)
        assert self.process.returncode == 0, self.output
        found = sorted(re.findall(r"rank \d: \d+\.\d+", self.output))
        assert found == [f"rank {rank}: {RESULT * self.numbers:.1f}" for rank in range(RANKS)]

    def pid(self, rank: int) -> int:
        """The process of a rank, by what its launcher has told it."""
        names = ("RANK", "OMPI_COMM_WORLD_RANK")
        environs = {pid: procfs.environ(pid) for pid in self._user.processes()}
        (found,) = (
            pid
            for pid, environ in environs.items()
            if str(rank) in [environ.get(name) for name in names]
        )
        return found


def has_debugpy(pid: int) -> bool:
    return DEBUGPY in procfs.mappings(pid)


async def verdict(user: User, *words: str) -> Json:
    """Ask for one, in time."""
    began = time.monotonic()
    done = await user.does("why", *words, "--json")
    assert time.monotonic() - began < VERDICT_WITHIN
    found: Json = json.loads(done.out)
    return found


async def culprit_of(command: Command) -> tuple[DapClient, int]:
    """Attach to the only rank that a debugger has been brought to; its thread's id too."""
    await until(
        lambda: command.session_path.exists() or command.process.returncode is not None,
        within=2 * LIMIT,
        what="a debugger in the culprit",
    )
    client = await joined(command, attach={}, timeout=STARTS)
    (entry,) = await listed(client, "state", "running", within=2 * LIMIT)
    assert entry["rank"] == CULPRIT
    return client, entry["threadId"]


async def variables(client: DapClient, thread: int, function: str) -> dict[str, str]:
    """The local variables of a function that a stopped thread is in."""
    trace = await client.request("stackTrace", {"threadId": thread}, timeout=LIMIT)
    (frame,) = (each for each in trace["stackFrames"] if function in each["name"])
    scopes = await client.request("scopes", {"frameId": frame["id"]}, timeout=LIMIT)
    reference = scopes["scopes"][0]["variablesReference"]
    body = await client.request("variables", {"variablesReference": reference}, timeout=LIMIT)
    return {each["name"]: each["value"] for each in body["variables"]}


@pytest.mark.parametrize("engine", LAUNCHERS)
async def test_the_rank_that_sleeps(user: User, engine: str) -> None:
    if shutil.which("gdb") is None and shutil.which("lldb") is None:
        pytest.skip("no native debugger is here: tests/launchers/install gdb lldb")
    job = Job(user, engine)
    await job.start("sleep")
    await job.says("sleeps")
    launcher = f"pid:{job.process.pid}"
    found = await verdict(user, launcher)
    assert (found["verdict"], found["suspects"][0]["ranks"]) == ("not-joined", "2"), found
    assert found["suspects"][0]["stack"][0]["name"] == "load"
    assert found["suspects"][1]["waitingFor"] == job.collective
    pids = [job.pid(rank) for rank in range(RANKS)]
    assert found["evidence"][-1].startswith(
        f'rank 2 is process {pids[CULPRIT]}; its variables in load: step = 3, shard = "shard-2"'
    )
    assert found["next"] == f"dap-mux why {launcher} --attach"
    assert not any(map(has_debugpy, pids))

    command = await user.start("why", launcher, "--attach")
    client, thread = await culprit_of(command)
    assert command.out.startswith("not-joined: rank 2 ")
    assert [has_debugpy(pid) for pid in pids] == [rank == CULPRIT for rank in range(RANKS)]
    assert await cast(client, "2", "p shard, step") == [("2", "('shard-2', 3)")]
    await client.request("pause", {"threadId": thread}, timeout=LIMIT)
    user.signal(pids[CULPRIT], signal.SIGUSR1)  # the fault is over, and the pause comes true
    stopped = await client.wait_event("stopped", timeout=LIMIT)
    locals_of_load = await variables(client, stopped["threadId"], "load")
    assert (locals_of_load["shard"], locals_of_load["step"]) == ("'shard-2'", "3")
    await client.request("release", {"ranks": "all"}, timeout=LIMIT)
    await job.ends()
    assert (await command.ends()).code == 21


@pytest.mark.parametrize("engine", LAUNCHERS)
async def test_the_rank_that_skips_a_collective(user: User, engine: str) -> None:
    """By the processes themselves, in any order; and their stacks, in one tree."""
    job = Job(user, engine)
    await job.start("skip")
    await job.says("has begun", RANKS)
    pids = f"pid:{','.join(str(job.pid(rank)) for rank in (3, 1, 2, 0))}"
    found = await verdict(user, pids)
    assert (found["verdict"], found["suspects"][0]["ranks"]) == ("mismatched-collective", "2")
    assert job.collective in found["suspects"][1]["waitingFor"]
    done = await user.does("stacks", pids, "--json")
    assert done.code == 0, done.err
    body = json.loads(done.out)
    assert body["source"] == "py-spy"
    (tree,) = body["threads"][0]["branches"]
    assert (tree["ranks"], tree["frames"][0]["name"]) == ("0-3", "<module>")
    assert [branch["ranks"] for branch in tree["branches"]] == ["0-1,3", "2"]
