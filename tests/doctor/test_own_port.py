"""A rank of our agent: nothing is wrong with it, or somebody else debugs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dap_mux.client import DapClient
from dap_mux.rank.in_process import SESSION
from tests.doctor.conftest import Doctor
from tests.doctor.subjects import tunnel
from tests.real.driving import COUNTING, let_end
from tests.real.ranks.agents import Agent, Start, attach
from tests.support.processes import proc_net
from tests.support.processes.commands import LIMIT
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]


@pytest.fixture
async def rank(start: Start, done: Path) -> Agent:
    return await start("--no-wait", "--port", str(proc_net.free_ports(1)), COUNTING, str(done))


async def at_rest(rank: Agent) -> None:
    """Nobody is connected to it any more."""
    port, pid = rank.record["port"], rank.process.pid
    await until(lambda: not proc_net.accepted(pid, port), within=LIMIT, what="nobody is there")


async def test_it_is_healthy(doctor: Doctor, rank: Agent, done: Path) -> None:
    """Also behind a tunnel, where it has to be asked."""
    where, port = f"127.0.0.1:{rank.record['port']}", proc_net.free_ports(1)
    assert await doctor.causes(where) == []
    async with tunnel((port, rank.record["port"])):
        for _ in range(2):
            assert await doctor.causes(f"127.0.0.1:{port}") == []
            await at_rest(rank)
    let_end(done)
    assert await rank.ends() == 0


@pytest.mark.parametrize("alone", [True, False], ids=["by a session", "by a stock client"])
async def test_somebody_else_debugs_it(
    doctor: Doctor, rank: Agent, done: Path, alone: bool
) -> None:
    where, port = f"127.0.0.1:{rank.record['port']}", proc_net.free_ports(1)
    if alone:
        client = await DapClient.connect("127.0.0.1", rank.record["port"])
        about = {"adapterID": "debugpy", SESSION: {}}
        await client.request("initialize", about, timeout=LIMIT)
        await client.request("attach", {"justMyCode": True}, timeout=LIMIT)
        await client.request("configurationDone", timeout=LIMIT)
    else:
        client = await attach(rank)
    found = await doctor.only("already-attached", where)
    assert f"(pid {os.getpid()})" in found["evidence"][0]
    async with tunnel((port, rank.record["port"])):
        found = await doctor.only("already-attached", f"127.0.0.1:{port}")
    assert "already being debugged" in found["evidence"][0]
    await client.disconnect(timeout=LIMIT)
    await at_rest(rank)
    assert await doctor.causes(where) == []
    let_end(done)
    assert await rank.ends() == 0
