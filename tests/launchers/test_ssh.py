"""`ssh:`: ranks on the loopback of two hosts, both on port 5678, and a tunnel that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.system.procfs import command_line
from tests.launchers import tour
from tests.launchers.pages import ours, typed
from tests.support.hosts.hosts import Host
from tests.support.hosts.private_network import inside, logged, possible
from tests.support.hosts.ssh_hosts import SshHosts, ssh_hosts
from tests.support.processes.commands import LIMIT, Command, User, listed, quiet
from tests.support.processes.waiting import until

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not possible(), reason="only root may make hosts with own networks"),
]
STEPS: Final = 8
TIMES: Final = 10
WHEN: Final = "step >= 3"


@pytest.fixture
async def ssh(tmp_path_factory: pytest.TempPathFactory, user: User) -> AsyncIterator[SshHosts]:
    """Hosts that the user's ssh knows by name."""
    async with ssh_hosts(tmp_path_factory.mktemp("hosts")) as hosts:
        user.environ.update(hosts.environ)
        yield hosts


class Job:
    """Two ranks on each host, which listen on its loopback from 5678 on."""

    def __init__(self, hosts: list[Host], folder: Path) -> None:
        self._hosts = [host for host in hosts for _ in range(tour.RANKS // len(hosts))]
        self._logs = [folder / f"rank-{rank}.log" for rank in range(tour.RANKS)]
        self.ranks: list[asyncio.subprocess.Process] = []

    async def start(self, environ: dict[str, str]) -> None:
        shared = {"MASTER_ADDR": self._hosts[0].address, "MASTER_PORT": "29500"}
        agent = [sys.executable, "-m", "dap_mux.rank", "--port"]
        program = [str(tour.PROGRAM), "--steps", str(STEPS), "--seconds", "0"]
        for rank, host in enumerate(self._hosts):
            numbers = {"RANK": str(rank), "WORLD_SIZE": str(tour.RANKS)}
            port = 5678 + self._hosts[:rank].count(host)
            words = [*inside(host.namespace), *agent, str(port), *program]
            process = await logged(self._logs[rank], *words, env={**environ, **shared, **numbers})
            self.ranks.append(process)

    @property
    def output(self) -> str:
        return "".join(log.read_text("utf-8") for log in self._logs)

    async def ready(self) -> None:
        """Each rank has said that it listens; connecting earlier could kill it."""
        said = "listens for a debugger on 127.0.0.1:567"
        await until(lambda: self.output.count(said) == tour.RANKS, within=LIMIT, what="4 listen")

    async def ends(self) -> None:
        codes = [await asyncio.wait_for(rank.wait(), 2 * LIMIT) for rank in self.ranks]
        assert codes == [0] * tour.RANKS, self.output


@pytest.fixture
async def job(user: User, ssh: SshHosts) -> AsyncIterator[Job]:
    job = Job(ssh.hosts, user.folder)
    try:
        await job.start(user.environ)
        await job.ready()
        yield job
    finally:
        for rank in job.ranks:
            with suppress(ProcessLookupError):
                rank.kill()
            await rank.wait()


def tunnel(user: User, host: str) -> int:
    """The process of the ssh to a host."""

    def is_it(pid: int) -> bool:
        words = command_line(pid) or ("",)
        return (words[0], words[-1]) == ("ssh", host)

    (found,) = filter(is_it, user.processes())
    return found


async def cut(user: User, attach: Command, client: DapClient, *states: str) -> None:
    """Kill the way to node2; it comes back, and then its ranks."""
    await quiet(client, {str(tour.PROGRAM): tour.holding(WHEN)})
    back = "the tunnel to node2 is back"
    seen = attach.err.count(back)
    os.kill(tunnel(user, "node2"), signal.SIGKILL)
    await until(lambda: attach.err.count(back) > seen, within=LIMIT, what="the tunnel is back")
    await listed(client, "state", *states)
    cast = {"ranks": "2,3", "command": "6 * 7"}
    answers = (await client.request("cast", cast, timeout=LIMIT))["results"]
    assert [(each["ranks"], each["value"]) for each in answers] == [("2-3", "42")]


async def test_two_hosts_behind_ssh(user: User, job: Job) -> None:
    (words,) = typed("hosts.md", 0)
    attach = await user.start(*ours(words), env=tour.without_clocks(user))
    client = await attach.client()
    await tour.attach(client, str(tour.PROGRAM), WHEN)
    await tour.two_held(client)
    entries = (await client.request("list", timeout=LIMIT))["ranks"]
    assert [entry["host"] for entry in entries] == ["node1", "node1", "node2", "node2"]
    await tour.ask_and_step(client)

    # A rank runs on when its debugger is cut off; the other one stays where it is.
    for _ in range(TIMES):
        await cut(user, attach, client, "running", "stopped", "running", "running")
    await client.request("continue", {"threadId": entries[1]["threadId"]}, timeout=LIMIT)
    await listed(client, "line", None, tour.line("a good line"), None, None)
    await client.request("continue", {"threadId": entries[1]["threadId"]}, timeout=LIMIT)
    await tour.two_held(client)  # the breakpoint is back in rank 3

    await tour.let_go(client)
    await job.ends()
    tour.check_result(job.output, STEPS)
    attach.process.terminate()  # nobody tells it that released ranks have ended
    assert (await attach.ends()).code == 0


async def test_hosts_that_let_nobody_in(user: User, ssh: SshHosts) -> None:
    """A host that nobody knows yet, one that does not know the user, none at all, and no ssh."""
    ours, address = ssh.environ["DAP_MUX_SSH"], ssh.hosts[0].address
    known = ssh.configuration.with_name("known_hosts")
    keyless = (
        f"ssh -F none -o UserKnownHostsFile={known} -o IdentityFile=none -o IdentityAgent=none"
    )
    for command, host, said in (
        (f"{ours} -o UserKnownHostsFile=none", "node1", "by hand (ssh node1) and accept its key"),
        (keyless, f"root@{address}", "dap-mux cannot enter a password: load a key"),
        (ours, "nowhere.invalid", "Could not resolve hostname"),
        ("no-such-ssh", "node1", "cannot start no-such-ssh"),
    ):
        attach = await user.start("attach", f"ssh:{host}", env={"DAP_MUX_SSH": command})
        await attach.says(f"the tunnel to {host} is down: ")
        await attach.says(said)
        attach.process.terminate()
        assert (await attach.ends()).code == 0
