"""Frameworks that start their ranks themselves, by the commands of docs/launchers.md.

Nothing of dap-mux is installed in their environment, and no launcher sets RANK.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from tests.launchers.launching import EXAMPLES, STARTS, cast, documented, launch, line, released
from tests.launchers.tools import environment
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User, bodies, listed
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = pytest.mark.timeout(300)
ENVIRON: Final = {"OMP_NUM_THREADS": "1"}

COMPILED: Final = """\
import time
from pathlib import Path
import torch


def helper(x):
    return x * 2  # in helper


@torch.compile(backend="eager")
def step(x):
    return helper(x) + 1  # in step


def plain(x):
    return x - 1  # in plain


while not Path("go").exists():
    step(torch.ones(2))
    time.sleep(0.05)
plain(torch.ones(2))
"""


@dataclass(frozen=True)
class Job:
    """One of the examples: `here` is the line where all of its ranks are held, once."""

    example: str
    here: str
    ranks: int
    factor: float
    """What is left of the error after a step."""

    @property
    def held(self) -> int:
        return line(EXAMPLES / self.example / "train.py", self.here)

    def check(self, output: str) -> None:
        """What it printed is what it prints without a debugger."""
        weight = f"{3 * (1 - self.factor**5):.4f}"
        said = sorted(each for each in output.splitlines() if each.startswith("rank "))
        assert said == [f"rank {rank}: weight {weight}" for rank in range(self.ranks)], output


async def debugged(user: User, job: Job, path: Path, words: list[str], **env: str) -> None:
    """Hold all ranks in their second step, compare what they have, and let the job end."""
    run = await launch(user, path, words, **ENVIRON, **env)
    program = str(user.folder / "examples" / job.example / "train.py")
    client = await joined(run, {program: [job.held]}, timeout=STARTS)
    await listed(client, "line", *[job.held] * job.ranks, within=STARTS)
    errors = [str(9.0 * (rank + 1) ** 2) for rank in range(job.ranks)]
    assert await cast(client, "all", "p loss.item()") == [
        (str(rank), error) for rank, error in enumerate(errors)
    ]
    await _compared(client, job, errors)
    job.check((await released(user, run, client)).out)


async def _compared(client: DapClient, job: Job, errors: list[str]) -> None:
    body = await client.request("compare", {"expression": "loss"}, timeout=LIMIT)
    said = [(each["ranks"], each["value"]) for each in body["values"]]
    assert sorted(said) == [(str(rank), error) for rank, error in enumerate(errors)]


async def test_workers_of_torch_multiprocessing_that_pass_their_rank(user: User) -> None:
    words = [*documented("torch.multiprocessing.spawn"), "--ranks", "2"]
    job = Job("spawn", "optimizer.zero_grad()", ranks=2, factor=0.95)
    await debugged(user, job, environment("torch"), words)


async def test_lightning_whose_main_process_starts_the_other(user: User) -> None:
    job = Job("lightning", 'self.log("loss", loss)', ranks=2, factor=0.95)
    port = str(free_ports(1))
    await debugged(user, job, environment("torch"), documented("Lightning"), MASTER_PORT=port)


@pytest.mark.rest
async def test_accelerate_which_starts_mpirun(user: User) -> None:
    """It takes every MPI but Open MPI for Intel's, whose options MPICH knows too."""
    environment("mpich")
    (user.folder / "hosts").write_text("localhost:4\n", "utf-8")
    both = f"{environment('torch')}{os.pathsep}{environment('mpich')}"
    job = Job("accelerate", "optimizer.zero_grad()", ranks=4, factor=0.85)
    await debugged(user, job, Path(both), documented("Accelerate"))


async def test_a_breakpoint_in_compiled_code_says_that_it_never_stops(user: User) -> None:
    script = user.script(COMPILED)
    one = ["run", "--", "env", "RANK=0", "WORLD_SIZE=1", "python", script]
    run = await launch(user, environment("torch"), one, **ENVIRON)
    lines = [line(Path(script), f"in {name}") for name in ("helper", "step", "plain")]
    client = await joined(run, {script: lines}, timeout=STARTS)

    def told() -> dict[int, str]:
        events = [body["breakpoint"] for body in bodies(client, "breakpoint")]
        return {
            each["line"]: each["message"].partition(",")[0] for each in events if "message" in each
        }

    said = {
        lines[0]: "torch.compile has compiled helper into step",
        lines[1]: "torch.compile has compiled step",
    }
    await until(lambda: told() == said, within=STARTS, what="news of both breakpoints")
    doctor = await user.does("doctor", "--json")
    causes = json.loads(doctor.out)["causes"]
    assert [(each["cause"], each["where"]) for each in causes] == [
        ("compiled", f"{script}:{number}") for number in lines[:2]
    ]
    (user.folder / "go").touch()
    (entry,) = await listed(client, "line", lines[2])
    await client.request("continue", {"threadId": entry["threadId"]}, timeout=LIMIT)
    await client.wait_event("terminated", timeout=STARTS)
    await client.disconnect()
    assert (await run.ends(within=STARTS)).code == 0
