"""A Dask cluster on two hosts: its workers listen on the loopback of theirs."""

from __future__ import annotations

import pytest

from tests.launchers.dask_scene import PROGRAM, RESULT, WORKERS, dask_cluster, line
from tests.launchers.launching import STARTS, cast, control
from tests.launchers.pages import ours, typed
from tests.real.driving import joined
from tests.support.hosts.private_network import possible
from tests.support.hosts.ssh_hosts import ssh_hosts
from tests.support.processes.commands import LIMIT, User, listed

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not possible(), reason="only root may make hosts with own networks"),
]
MEAN = line("mean = sum(present)")


async def test_a_worker_of_each_host_is_held_and_stepped(
    user: User, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The scheduler's host has workers, too; both are reached by ssh."""
    async with (
        ssh_hosts(tmp_path_factory.mktemp("hosts")) as ssh,
        dask_cluster(user, ssh.hosts) as cluster,
    ):
        user.environ.update(ssh.environ)
        await cluster.has_workers()
        words = ours(typed("dask.md", 0)[1], "dask:tcp://HOST:8786", f"dask:{cluster.address}")
        run = await user.start(*words, "--python", str(cluster.python))
        first = {"line": MEAN, "condition": "ranks(1,3): True"}
        breakpoints = {str(PROGRAM): [first]}
        client = await joined(run, breakpoints, attach={"justMyCode": False}, timeout=STARTS)
        await listed(client, "state", *["running"] * (WORKERS + 1), within=STARTS)
        job = await cluster.runs()
        entries = await listed(client, "line", None, MEAN, None, MEAN, None, within=STARTS)
        addresses = [host.address for host in ssh.hosts]
        assert [each["host"] for each in entries[:WORKERS]] == [
            address for address in addresses for _ in range(WORKERS // 2)
        ]
        await control(client, "next", entries[1])
        await listed(client, "line", None, MEAN + 1, None, MEAN + 1, None, within=STARTS)
        same = await cast(client, "dask:1,3", "p round(mean) in range(31)")
        assert same == [("dask:1,3", "True")]
        await client.request("release", {"ranks": "all"}, timeout=LIMIT)
        assert await job.ends() == (0, RESULT)
        await client.disconnect()
        run.process.terminate()
        assert (await run.ends()).code == 0
        assert (await cluster.state("workers"))["listening"] == 0
