"""A rank keeps its port: an adapter that has ended, or accepts nobody, is replaced.

And by one that is better: a session whose connection has broken takes its own place there.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import time
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient, RequestFailed
from dap_mux.rank.injected.attach.adapter_keeper import unaccepted
from dap_mux.rank.injected.attach.adapter_program import KEY
from tests.real.driving import COUNT, COUNTING, Driver, StartRanks, driving
from tests.real.faults.test_ranks_come_and_go import EAGER, steps_on
from tests.support.faults import Orphan, proxied
from tests.support.processes import proc_net
from tests.support.processes.ranks import HOST, Rank
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]
TRIES: Final = 50
ACCEPTED_WITHIN: Final = 0.5  # s; an adapter that accepts needs a hundredth of it
LIMIT: Final = 60.0  # s; 15 are promised on a machine that has time for us


def hang_up_before_the_greeting(port: int, *, survives: bool = False) -> None:
    """What makes debugpy's own adapter accept no connection any more.

    Whether it does depends on which of its threads is first to see that the client has gone: it is
    done again until somebody waits in vain. An adapter that `survives` accepts them all.
    """
    for _ in range(TRIES):
        _hang_up_thrice(port)
        deadline = time.monotonic() + ACCEPTED_WITHIN
        while unaccepted(port, socket.AF_INET) and time.monotonic() < deadline:
            time.sleep(0.01)
        waiting = unaccepted(port, socket.AF_INET)
        assert not (waiting and survives)
        if waiting or survives:
            return
    raise AssertionError(f"the adapter has accepted {3 * TRIES} clients that had gone")


def _hang_up_thrice(port: int) -> None:
    """The adapter is stopped meanwhile, so all have gone when it accepts the first."""
    adapter = proc_net.listener(port)
    assert adapter
    os.kill(adapter, signal.SIGSTOP)
    try:
        for _ in range(3):
            connection = socket.create_connection((HOST, port))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
    finally:
        os.kill(adapter, signal.SIGCONT)


async def given_ours(driver: Driver, rank: Rank) -> int:
    """A rank loses its adapter while it is attached; return the pid of the next one."""
    adapter = proc_net.listener(rank.port)
    assert adapter
    os.kill(adapter, signal.SIGKILL)
    await lost_and_back(driver, rank.rank)
    return proc_net.listener(rank.port) or 0


async def lost_and_back(driver: Driver, rank: int = 0) -> None:
    await driver.until(lambda e: e[rank]["state"] == "lost", within=LIMIT, what="lost")
    await driver.until(lambda e: e[rank]["line"] == COUNT, within=LIMIT, what="back")


@pytest.mark.heavy
async def test_an_adapter_ends_again_and_again(start_ranks: StartRanks, done: Path) -> None:
    """The rank runs on each time, is attached again, and stops with the others."""
    ranks = await start_ranks(2, COUNTING, arguments=[str(done)])
    async with driving(ranks, {COUNTING: [COUNT]}, settings=EAGER, stopped=COUNT) as driver:
        for _ in range(3):
            await given_ours(driver, ranks[1])
        await steps_on(driver, 0, [0, 1])
        await driver.ends_well(ranks, done)


@pytest.mark.heavy
async def test_an_adapter_accepts_nobody(start_ranks: StartRanks, done: Path) -> None:
    """Nobody is attached, and who comes waits: the rank sees it and has a new adapter, a better."""
    (rank,) = await start_ranks(1, COUNTING, arguments=[str(done)])
    async with driving([rank.port], settings=EAGER) as driver:
        await driver.live(1, within=LIMIT)
        await driver.leave()
        adapter = proc_net.listener(rank.port)
        hang_up_before_the_greeting(rank.port)
        again = await Driver.attach(driver.session)
        await again.states("running", within=LIMIT)
        replaced = proc_net.listener(rank.port)
        assert replaced != adapter
        await again.leave()
        hang_up_before_the_greeting(rank.port, survives=True)
        third = await Driver.attach(driver.session)
        await third.states("running", within=LIMIT)
        assert proc_net.listener(rank.port) == replaced
        await third.ends_well([rank], done)


async def test_a_session_takes_its_own_place(
    start_ranks: StartRanks, tmp_path: Path, done: Path
) -> None:
    """Its connection has broken, and the rank is never told: it is attached again all the same."""
    logs = tmp_path / "logs"
    logs.mkdir()
    env = {"DEBUGPY_LOG_DIR": str(logs)}
    (rank,) = await start_ranks(1, COUNTING, arguments=[str(done)], env=env)
    async with (
        proxied(rank.port) as tunnel,
        driving([tunnel.port], {COUNTING: [COUNT]}, settings=EAGER, stopped=COUNT) as driver,
    ):
        adapter = await given_ours(driver, rank)
        await tunnel.fail(Orphan())
        await lost_and_back(driver)
        assert proc_net.listener(rank.port) == adapter
        await tunnel.heal()
        await steps_on(driver, 0, [0])
        await driver.ends_well([rank], done)
        told = [json.loads(body) for body in driver.session.engine.told]
    (key,) = {one["arguments"][KEY] for one in told if one["command"] == "attach"}
    assert key not in (logs / f"debugpy.adapter-{adapter}.log").read_text("utf-8")


async def test_no_other_debugger_takes_its_place(start_ranks: StartRanks, done: Path) -> None:
    """Another session, and clients with no key or a wrong one, are refused as ever."""
    (rank,) = await start_ranks(1, COUNTING, arguments=[str(done)])
    async with driving([rank.port], {COUNTING: [COUNT]}, settings=EAGER, stopped=COUNT) as driver:
        await given_ours(driver, rank)
        async with driving([rank.port], settings=EAGER) as stranger:
            await stranger.until(lambda e: "already being debugged" in e[0]["reason"])
        for arguments in ({}, {KEY: ""}, {KEY: None}, {KEY: "0" * 64}):
            client = await DapClient.connect(HOST, rank.port)
            await client.request("initialize", {"adapterID": "debugpy"}, timeout=LIMIT)
            with pytest.raises(RequestFailed, match="already being debugged"):
                await client.request("attach", arguments, timeout=LIMIT)
            await client.close()
        assert [entry["line"] for entry in await driver.entries()] == [COUNT]
        await steps_on(driver, 0, [0])
        await driver.ends_well([rank], done)


@pytest.mark.heavy
async def test_an_adapter_does_not_let_go(start_ranks: StartRanks, done: Path) -> None:
    """It waits for a rank that hangs while the session comes back: it ends, and is replaced."""
    (rank,) = await start_ranks(1, COUNTING, arguments=[str(done)])
    async with (
        proxied(rank.port) as tunnel,
        driving([tunnel.port], {COUNTING: [COUNT]}, settings=EAGER, stopped=COUNT) as driver,
    ):
        adapter = await given_ours(driver, rank)
        rank.kill(signal.SIGSTOP)
        await tunnel.fail(Orphan())
        await until(
            lambda: proc_net.listener(rank.port) != adapter, within=LIMIT, what="it has ended"
        )
        rank.kill(signal.SIGCONT)
        await driver.until(lambda e: e[0]["line"] == COUNT, within=LIMIT, what="back")
        await steps_on(driver, 0, [0])
        await driver.ends_well([rank], done)
