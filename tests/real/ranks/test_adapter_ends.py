"""An adapter does not outlive its rank, whenever that is killed and whoever holds a connection."""

# ruff: noqa: ASYNC240  (small files, and nothing else waits for this event loop)

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.system import procfs
from tests.real.driving import StartRanks, driving, script
from tests.real.faults.test_ranks_come_and_go import EAGER
from tests.support.processes import proc_net
from tests.support.processes.commands import line_of
from tests.support.processes.ranks import HOST, Rank
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]
FORKS: Final = script("forks")
COUNT: Final = line_of(FORKS, "count")
LIMIT: Final = 30.0  # s; not a wait


async def is_gone(pid: int) -> None:
    await until(lambda: procfs.command_line(pid) is None, within=LIMIT, what="its end")


@pytest.mark.parametrize(
    "phase",
    [*(pytest.param(one, marks=pytest.mark.heavy) for one in ("unheard", "heard")), "silent"],
)
async def test_a_rank_is_killed_while_it_starts_its_adapter(phase: str, tmp_path: Path) -> None:
    """The adapter listens already, and no rank will ever connect to it."""
    port = proc_net.free_ports(1)
    log = tmp_path / "log"
    words = [script("spawns_adapter"), str(port), phase]
    with log.open("wb") as out:
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        rank = await asyncio.create_subprocess_exec(
            sys.executable, *words, stdout=out, stderr=out, env=env
        )
    try:
        await until(lambda: phase in log.read_text("utf-8"), within=LIMIT, what="the phase")
        await until(lambda: proc_net.listens(port), within=LIMIT, what="the adapter listens")
        adapter = proc_net.listener(port)
    finally:
        rank.kill()
        await rank.wait()
    assert adapter
    try:
        await is_gone(adapter)
    finally:
        end(adapter)


def end(adapter: int) -> None:
    """Leave nothing behind where the test has failed."""
    if procfs.command_line(adapter) is not None:
        os.kill(adapter, signal.SIGKILL)


async def given_ours(rank: Rank) -> int:
    """The rank's adapter ends while a session is attached; the pid of the one in its place."""
    async with driving([rank.port], {FORKS: [COUNT]}, settings=EAGER, stopped=COUNT) as driver:
        adapter = proc_net.listener(rank.port)
        assert adapter
        os.kill(adapter, signal.SIGKILL)
        await driver.until(lambda e: e[0]["state"] == "lost", within=LIMIT, what="lost")
        await driver.until(lambda e: e[0]["line"] == COUNT, within=LIMIT, what="back")
        await driver.leave()
    return proc_net.listener(rank.port) or 0


async def counting(start_ranks: StartRanks, done: Path, *, ours: bool) -> tuple[Rank, int]:
    """A rank that counts, and its adapter's pid."""
    files = [str(done), f"{done}-fork"]
    command = ["--configure-subProcess", "False"]
    (rank,) = await start_ranks(1, FORKS, arguments=files, wait=False, options=command)
    return rank, await given_ours(rank) if ours else rank.adapter


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "debugpy's"])
async def test_a_forked_child_holds_the_rank_s_connection(
    start_ranks: StartRanks, done: Path, ours: bool
) -> None:
    """It has every file handle of the rank, and is none of the adapter's business."""
    rank, adapter = await counting(start_ranks, done, ours=ours)
    if not ours:
        async with driving([rank.port], settings=EAGER) as driver:
            await driver.live(1, within=LIMIT)
            await driver.leave()
    Path(f"{done}-fork").touch()
    line = re.compile(r"^child (\d+)\n", re.MULTILINE)  # its beginning may be there before its end
    await until(lambda: line.search(rank.output), within=LIMIT, what="a child")
    (child,) = map(int, line.findall(rank.output))
    rank.kill()
    await is_gone(adapter)
    assert procfs.command_line(child)
    done.touch()


@pytest.mark.heavy
async def test_a_client_that_never_leaves(start_ranks: StartRanks, done: Path) -> None:
    """It is told of the end, and has a while to take its leave."""
    rank, adapter = await counting(start_ranks, done, ours=True)
    client = await DapClient.connect(HOST, rank.port)
    await client.request("initialize", {"adapterID": "debugpy"}, timeout=LIMIT)
    rank.kill()
    await is_gone(adapter)
    await client.close()
