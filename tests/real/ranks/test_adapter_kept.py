"""A rank keeps its port: an adapter that has ended, or accepts nobody, is replaced."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from tests.real.driving import Driver, line_of, script
from tests.real.faults.test_ranks_come_and_go import EAGER, let_end, steps_on
from tests.support.processes import proc_net
from tests.support.processes.ranks import HOST, Rank
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]
StartRanks = Callable[..., Awaitable[list[Rank]]]
PROGRAM: Final = script("until_told")
COUNT: Final = line_of(PROGRAM, "count")
LIMIT: Final = 60.0  # s; 15 are promised on a machine that has time for us


def hang_up_before_the_greeting(port: int) -> None:
    """What makes debugpy's own adapter accept nobody any more."""
    for _ in range(10):
        socket.create_connection((HOST, port)).close()


async def test_an_adapter_ends_again_and_again(start_ranks: StartRanks, tmp_path: Path) -> None:
    """The rank runs on each time, is attached again, and stops with the others."""
    done = tmp_path / "done"
    ranks = await start_ranks(2, PROGRAM, arguments=[str(done)])
    async with session([rank.port for rank in ranks], settings=EAGER) as running:
        driver = await Driver.attach(running, breakpoints={PROGRAM: [COUNT]})
        await driver.stopped(COUNT, 2)
        for _ in range(3):
            adapter = proc_net.listener(ranks[1].port)
            assert adapter
            os.kill(adapter, signal.SIGKILL)
            await driver.until(lambda e: e[1]["state"] == "lost", within=LIMIT, what="lost")
            await driver.until(lambda e: e[1]["line"] == COUNT, within=LIMIT, what="back")
        await steps_on(driver, 0, [0, 1])
        await driver.leave()
        let_end(done)
        assert [await rank.ended() for rank in ranks] == [0, 0]


async def test_an_adapter_accepts_nobody(start_ranks: StartRanks, tmp_path: Path) -> None:
    """Nobody is attached, and who comes waits: the rank sees it and has a new adapter, a better."""
    done = tmp_path / "done"
    (rank,) = await start_ranks(1, PROGRAM, arguments=[str(done)])
    async with session([rank.port], settings=EAGER) as running:
        driver = await Driver.attach(running)
        await driver.live(1, within=LIMIT)
        await driver.leave()
        adapter = proc_net.listener(rank.port)
        hang_up_before_the_greeting(rank.port)
        again = await Driver.attach(running)
        await again.states("running", within=LIMIT)
        replaced = proc_net.listener(rank.port)
        assert replaced != adapter
        await again.leave()
        hang_up_before_the_greeting(rank.port)
        third = await Driver.attach(running)
        await third.states("running", within=LIMIT)
        assert proc_net.listener(rank.port) == replaced
        await third.leave()
        let_end(done)
        assert await rank.ended() == 0
