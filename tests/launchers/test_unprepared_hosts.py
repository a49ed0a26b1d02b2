"""`why` of several hosts that nobody has prepared, by one command: ssh, SLURM, kubectl."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.launchers.kube_scene import JOB, Scene, scene
from tests.launchers.pages import ours, typed
from tests.launchers.test_slurm import slurm
from tests.support.hosts.hosts import Host, namespaces, route_between
from tests.support.hosts.private_network import inside, logged, possible
from tests.support.hosts.slurm_cluster import SlurmCluster
from tests.support.hosts.ssh_hosts import SshHosts, servers
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.waiting import until

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not possible(), reason="only root may make hosts with own networks"),
]
__all__ = ["scene", "slurm"]
PROGRAM: Final = Path(__file__).parent / "scripts" / "unprepared_sockets.py"
SLEEPER: Final = 2
HOSTS: Final = 4
BLOCK: Final = 2  # of docs/why.md: the commands about several hosts
PORT: Final = "29500"
Json = dict[str, Any]


@asynccontextmanager
async def job(
    user: User, hosts: Sequence[Host], *, each: int = 1, port: str = PORT, name: str = "job"
) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """`each` ranks on every host, one of which sleeps."""
    log = user.folder / f"{name}.log"
    ranks: list[asyncio.subprocess.Process] = []
    try:
        for rank, host in enumerate(host for host in hosts for _ in range(each)):
            place = {"RANK": str(rank), "WORLD_SIZE": str(each * len(hosts))}
            place |= {"MASTER_ADDR": hosts[0].address, "MASTER_PORT": port}
            words = [*inside(host.namespace), sys.executable, str(PROGRAM), str(SLEEPER)]
            ranks.append(await logged(log, *words, env={**user.environ, **place}))
        await until(lambda: "sleeps" in log.read_text("utf-8"), within=LIMIT, what="one sleeps")
        yield ranks
    finally:
        for one in ranks:
            with suppress(ProcessLookupError):  # rank 0 has gone before
                one.kill()
            await one.wait()


@pytest.fixture
async def hosts(tmp_path_factory: pytest.TempPathFactory, user: User) -> AsyncIterator[SshHosts]:
    """Four hosts that the user's ssh knows by name, and that reach each other."""
    base = tmp_path_factory.mktemp("hosts")
    async with AsyncExitStack() as stack:
        made = stack.enter_context(namespaces(base, HOSTS))
        route_between(made)
        running = await stack.enter_async_context(servers(made, base))
        user.environ.update(running.environ)
        yield running


async def verdict(user: User, *words: str) -> Json:
    done = await user.does(*words, "--json")
    assert done.out, done.err
    found: Json = json.loads(done.out)
    return found


def typed_why(number: int) -> list[str]:
    """The words of a line of docs/why.md about several hosts."""
    return ours(typed("why.md", BLOCK)[number])


async def test_four_hosts_by_ssh(user: User, hosts: SshHosts) -> None:
    """One command names the rank that sleeps, and says which host does not answer."""
    words = typed_why(0)
    assert words[1:] == [f"ssh:{host.name}" for host in hosts.hosts]
    async with job(user, hosts.hosts) as ranks:
        found = await verdict(user, *words)
        culprit = ranks[SLEEPER].pid
        stacks = await user.does("stacks", *words[1:], "--json")
        watch = await user.start(*words, "--watch=1")
        await until(lambda: "not-joined: rank 2" in watch.out, within=LIMIT, what=watch.out)
        watch.process.terminate()
        await watch.ends()
        hosts.hosts[-1].falls_silent()
        without = await verdict(user, *words)
    for each in (found, without):
        assert (each["verdict"], each["suspects"][0]["ranks"]) == ("not-joined", "2"), each
        assert f"rank 2 is process {culprit} on node3" in " ".join(each["evidence"])
        assert 'shard = "shard-2"' in " ".join(each["evidence"])
        assert each["next"] == f"on node3: dap-mux attach pid:{culprit}"
    (thread,) = json.loads(stacks.out)["threads"]
    (program,) = thread["branches"]
    assert sorted(each["ranks"] for each in program["branches"]) == ["0", "1,3", "2"], stacks
    assert "node4: no answer within 8 s" in without["evidence"]
    assert "ranks 1,3 wait in all_reduce" in " ".join(found["evidence"])


async def test_two_jobs_on_the_same_hosts(user: User, hosts: SshHosts) -> None:
    """They are listed, and one is chosen by its name."""
    two = hosts.hosts[:2]
    names = [f"ssh:{host.name}" for host in two]
    address = two[0].address
    async with (
        job(user, two, each=2) as ranks,
        job(user, two, each=2, port="29501", name="other"),
    ):
        both = await user.does("why", *names)
        found = await verdict(user, "why", *names, f"--job={address}:29500")
        culprit = ranks[SLEEPER].pid
    assert both.code == 2
    assert "several jobs run there: " in both.err
    assert f"{address}:29501 (ranks 0-3, " in both.err
    assert f"rank 2 is process {culprit} on node2" in " ".join(found["evidence"])


async def test_a_slurm_job_by_its_number(user: User, slurm: SlurmCluster) -> None:
    program = f"{sys.executable} {PROGRAM} {SLEEPER}"
    environ = {**os.environ, "MASTER_ADDR": slurm.nodes[0].address, "MASTER_PORT": PORT}
    number = slurm.submit(
        "-N2", "--ntasks-per-node=2", "--wrap", f"srun {program}", cwd=user.folder, env=environ
    )
    log = user.folder / f"slurm-{number}.out"
    await until(
        lambda: log.exists() and "sleeps" in log.read_text("utf-8"), within=LIMIT, what="asleep"
    )
    found = await verdict(user, *ours(typed("why.md", BLOCK)[1], "4711", str(number)))
    assert (found["verdict"], found["suspects"][0]["ranks"]) == ("not-joined", "2"), found
    assert any("on node2; its variables in load: step" in each for each in found["evidence"]), found


async def test_the_pods_of_a_job(user: User, scene: Scene) -> None:
    """One command; and what is said where the right to read processes is missing."""
    pods = [scene.pod(number) for number in range(4)]
    for pod in pods:
        await pod.start(sys.executable, str(PROGRAM), str(SLEEPER), cwd=user.folder)
    await until(lambda: "sleeps" in pods[SLEEPER].output, within=LIMIT, what="one sleeps")
    found = await verdict(user, *typed_why(2))
    assert (found["verdict"], found["suspects"][0]["ranks"]) == ("not-joined", "2"), found
    assert f"on pod {pods[SLEEPER].name}; its variables" in " ".join(found["evidence"])
    for pod in pods:
        pod.reads_processes = False
    blind = await verdict(user, "why", f"k8s:job/{JOB}")
    assert blind["verdict"] == "undecided"
    (line,) = (each for each in blind["evidence"] if each.startswith("ranks 0-3: "))
    assert "its memory cannot be read: Permission denied; its container's `sec" in line
    assert "securityContext: {capabilities: {add: [SYS_PTRACE]}}" in line
