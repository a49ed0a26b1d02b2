"""SLURM: a job of four ranks on two nodes, found by its number.

Its batch script is the one of examples/slurm, submitted by the commands of docs/slurm.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from dap_mux.client import DapClient
from dap_mux.cluster.slurm import Slurm, time_left
from dap_mux.cluster.source import SourceSpec
from tests.launchers import tour
from tests.launchers.pages import ours, typed
from tests.support.clients.conversation import Conversation
from tests.support.hosts.private_network import possible
from tests.support.hosts.slurm_cluster import SlurmCluster, slurm_cluster
from tests.support.hosts.ssh_hosts import servers
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.waiting import until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not possible(), reason="only root may make hosts with own networks"),
]

# The job's own way from SLURM's variables to those of examples/data_parallel.py
TRAIN = """\
import os, runpy
said = {{"RANK": os.environ["SLURM_PROCID"], "WORLD_SIZE": os.environ["SLURM_NTASKS"]}}
os.environ.update(said, MASTER_ADDR="{address}", MASTER_PORT="29500")
runpy.run_path("{program}", run_name="__main__")
"""


@pytest.fixture
async def slurm(
    tmp_path_factory: pytest.TempPathFactory, user: User, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SlurmCluster]:
    """A cluster that the user's commands find, with `python` in its jobs' PATH."""
    async with slurm_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setenv("SLURM_CONF", cluster.environ["SLURM_CONF"])
        user.environ.update(cluster.environ, PATH=os.environ["PATH"])
        yield cluster


def batch(user: User) -> Path:
    """The example's folder, as a user has copied it."""
    shutil.copytree(ROOT / "examples", user.folder / "examples")
    return user.folder / "examples" / "slurm"


def output(folder: Path, job: int) -> str:
    path = folder / f"slurm-{job}.out"
    return path.read_text("utf-8") if path.exists() else ""


async def processes(client: DapClient) -> set[str]:
    """The pids of the two that are held, as far as they are."""
    command = "p __import__('os').getpid()"
    body = await client.request("cast", {"ranks": "1,3", "command": command}, timeout=LIMIT)
    return {each["value"] for each in body["results"]}


async def others_than(before: set[str], client: DapClient) -> None:
    """Wait until two other processes are held."""
    deadline = time.monotonic() + 2 * LIMIT
    while len(await processes(client) - before) < len(tour.HELD):
        assert time.monotonic() < deadline, f"still {before}"
        await asyncio.sleep(0.1)


async def test_a_batch_job_is_attached_to_by_its_number(user: User, slurm: SlurmCluster) -> None:
    """Before it has started; and it is requeued while two of its ranks are stopped."""
    folder = batch(user)
    program = str(folder.parent / "data_parallel.py")
    cd, sbatch, attach_words = typed("slurm.md", 0)
    assert user.folder / cd[1] == folder
    job = slurm.submit("--hold", *sbatch[1:], *tour.OPTIONS, cwd=folder)
    attach = await user.start(*ours(attach_words, "4711", str(job)))
    client = await attach.client()
    await tour.attach(client, program)
    await attach.says(f"job {job} waits in SLURM's queue (JobHeldUser)")
    slurm.tell("scontrol", "release", str(job))
    await tour.two_held(client)
    before = await processes(client)
    slurm.tell("scontrol", "requeue", str(job))
    await slurm.reaches(job, "PENDING")
    # It would wait for 2 minutes. In the second in which its credential was revoked slurmd refuses
    # a new one, and the job fails.
    slurm.tell("scontrol", "update", f"JobId={job}", "StartTime=now+2")
    await others_than(before, client)
    await tour.two_held(client)
    await tour.ask_and_step(client)
    await tour.let_go(client)
    assert await slurm.ends(job) == "COMPLETED", output(folder, job)
    tour.check_result(output(folder, job))
    done = await attach.ends()  # it has seen in the queue that the job is over
    assert (done.code, done.out) == (0, ""), done.err


async def endpoints(rest: str) -> list[str]:
    """Where the ranks of a word are, in their order."""
    records = await Slurm(SourceSpec("slurm", rest)).discover()
    assert [record.rank for record in records] == [*range(len(records))]
    return [record.endpoint for record in records]


async def test_what_is_said_of_jobs_that_have_no_ranks(user: User, slurm: SlurmCluster) -> None:
    """Each job is wrong in its own way; the messages are SLURM's own words with what helps."""
    folder = user.folder
    held = slurm.submit("--hold", "--wrap", "sleep 600", cwd=folder)
    ended = slurm.submit("--wrap", "exit 3", cwd=folder)
    empty = slurm.submit("--time=10", "--wrap", "sleep 600", cwd=folder)
    several = slurm.submit(
        "-n2", "--wrap", "srun -n1 --overlap sleep 600 & srun -n1 --overlap sleep 601", cwd=folder
    )
    array = slurm.submit("--array=0-1", "--wrap", "sleep 600", cwd=folder)
    assert await slurm.ends(ended) == "FAILED"
    await slurm.reaches(empty, "RUNNING")
    # Both of the array: one that still waits has no name of its own yet.
    both = ["RUNNING"] * 2
    await until(lambda: slurm.state(array).split() == both, within=60, what="the array runs")
    await until(lambda: len(slurm.steps(several)) == 3, within=60, what="two steps and the script")

    left = await time_left(str(empty))
    assert left is not None
    assert timedelta(minutes=5) < left <= timedelta(minutes=10)
    assert await time_left(str(several)) is None  # UNLIMITED
    assert await time_left(str(held)) is None

    words = {
        "4711": "SLURM has no job 4711",
        f"{ended}": f"job {ended} has ended (FAILED)",
        f"{several}": f"job {several} runs several steps, {several}.0 (sleep) and {several}.1",
        f"{array}": f"job {array} is an array: name one of {array}_0, {array}_1",
    }
    for word, message in words.items():
        done = await user.does("attach", f"slurm:{word}")
        assert (done.code, done.out) == (3, ""), done
        assert message in done.err

    dealt = slurm.submit("-N2", "-n3", "--wrap", "srun -m cyclic sleep 600", cwd=folder)
    await until(lambda: len(slurm.steps(dealt)) == 2, within=60, what="a step and the script")
    one, two = (host.address for host in slurm.nodes)
    assert await endpoints(f"{dealt}") == [f"{one}:5678", f"{two}:5679", f"{one}:5680"]
    assert await endpoints(f"{dealt}.0:6000+2") == [
        *(f"{one}:6000", f"{one}:6001", f"{two}:6002", f"{two}:6003", f"{one}:6004", f"{one}:6005")
    ]
    assert await endpoints(f"{dealt}.batch+2") == [f"{one}:5678", f"{one}:5679"]

    pending = await user.start("attach", f"slurm:{held}", f"late=slurm:{empty}.0")
    await pending.says(f"job {held} waits in SLURM's queue (JobHeldUser)")
    await pending.says(f"job {empty} has no running step (srun starts one)")
    pending.process.terminate()
    assert (await pending.ends()).code == 0


async def test_a_machine_without_slurm(user: User) -> None:
    lost = await user.does("attach", "slurm:1", env={"PATH": "/nonexistent"})
    assert (lost.code, lost.out) == (1, "")
    assert "squeue is not installed" in lost.err


async def test_ranks_on_loopback_behind_ssh(
    user: User, slurm: SlurmCluster, tmp_path: Path
) -> None:
    srun = typed("slurm.md", 1)[-1]
    (attach_words,) = typed("slurm.md", 2)
    user.script(TRAIN.format(address=slurm.nodes[0].address, program=tour.PROGRAM))
    script = Path(user.script(f"#!/bin/bash\n{shlex.join([*srun, *tour.OPTIONS])}\n", "job.sh"))
    async with servers(slurm.nodes, tmp_path) as ssh:
        user.environ.update(ssh.environ)
        job = slurm.submit("-N2", "--ntasks-per-node=2", str(script), cwd=user.folder)
        attach = await user.start(*ours(attach_words, "4711", str(job)))
        client = await attach.client()
        await tour.taken(client)
        assert await slurm.ends(job) == "COMPLETED", output(user.folder, job)
        tour.check_result(output(user.folder, job))
        assert (await attach.ends()).code == 0


@pytest.mark.parametrize(("nodes", "block"), [(1, 3), (2, 4)])
async def test_a_job_that_dap_mux_runs_inside_an_allocation(
    user: User, slurm: SlurmCluster, nodes: int, block: int
) -> None:
    """`dap-mux run -- srun`, on a node; its editor comes by the session's unix socket.

    Where there are several nodes, ranks call the session.
    """
    job = run_inside(user, slurm, nodes, block)
    conversation = Conversation("editor")
    client = await editor(user, slurm, job, conversation)
    await tour.taken(client)
    assert await slurm.ends(job) == "COMPLETED", output(user.folder, job)
    tour.check_result(output(user.folder, job))
    await client.close()
    conversation.finish(expect_all_answered=True)
    if nodes == 1:
        await the_last_debugger_leaves_before_its_ranks_come(user, slurm)


def run_inside(user: User, slurm: SlurmCluster, nodes: int, block: int) -> int:
    """Submit what a block of the page runs in an allocation of so many nodes."""
    (words,) = typed("slurm.md", block)
    user.script(TRAIN.format(address=slurm.nodes[0].address, program=tour.PROGRAM))
    command = " ".join(f'"{word}"' for word in [*words, *tour.OPTIONS])  # $ means what it does
    return slurm.submit("-n4", f"-N{nodes}", "--wrap", command, cwd=user.folder, env=user.environ)


async def editor(
    user: User, slurm: SlurmCluster, job: int, conversation: Conversation
) -> DapClient:
    """Connect to the session of a job, by its unix socket."""
    sessions = user.sessions
    await until(
        lambda: [*sessions.glob("*.json")] or "FAILED" in slurm.state(job),
        within=2 * LIMIT,
        what="a session",
    )
    assert sessions.exists(), output(user.folder, job)
    (file,) = sessions.glob("*.json")
    streams = await asyncio.open_unix_connection(json.loads(file.read_text("utf-8"))["unix"])
    return DapClient(*streams, tap=conversation.tap)


async def the_last_debugger_leaves_before_its_ranks_come(user: User, slurm: SlurmCluster) -> None:
    """No rank waits for a debugger that may never come."""
    job = run_inside(user, slurm, 1, 3)
    client = await editor(user, slurm, job, Conversation("editor"))
    await client.handshake({"justMyCode": True}, timeout=LIMIT)
    await client.request("disconnect", {"terminateDebuggee": False}, timeout=LIMIT)
    assert await slurm.ends(job) == "COMPLETED", output(user.folder, job)
    tour.check_result(output(user.folder, job))
    await client.close()
