"""Row of the fault table: a logpoint in a hot loop, behind a slow tunnel."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Final

import pytest

from dap_mux.rank.injected.attach.conditions import FIRST_LINES
from tests.real.driving import Driver, StartRanks, driving, let_end, script
from tests.support.faults import proxies
from tests.support.faults.kinds import Rate
from tests.support.faults.proxy import Pipe
from tests.support.processes.commands import LIMIT, line_of

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(120)]
PROGRAM: Final = script("logs_a_lot")
LOGPOINT: Final = {"line": line_of(PROGRAM, "says"), "logMessage": "$rank is at {number}"}
TOTAL: Final = 6_000  # lines of each rank, in four seconds
BYTES_A_SECOND: Final = 50_000  # of the line that all ranks share
MAX_BYTES: Final = 60_000  # of output; unfolded it is 3.5 MB
BRIEF: Final = 100  # lines of each rank: less than a second
MOST_AHEAD: Final = BYTES_A_SECOND  # bytes that an answer or a stop lets go first: a second of them
SAID: Final = re.compile(
    r"\[(\d)\] \1 is at (\d+)(?:  \(([\d,]+) more like it in [\d.]+ s\))?\n", re.MULTILINE
)


class SharedLine(Rate):
    """One thin line for several connections, which take turns; it counts what it carries."""

    def __init__(self, bytes_a_second: float) -> None:
        super().__init__(bytes_a_second)
        self.carried = 0
        self._turn = asyncio.Lock()

    async def carry(self, pipe: Pipe, data: bytes) -> None:
        async with self._turn:
            await super().carry(pipe, data)
        self.carried += len(data)


class Heard:
    """What a client has been told by the logpoint."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def lines(self, rank: int) -> list[tuple[int, int]]:
        """Each line of a rank: its number, and how many it stands for, itself included."""
        return [
            (int(number), 1 + int((more or "0").replace(",", "")))
            for one, number, more in SAID.findall(self._driver.output)
            if int(one) == rank
        ]

    def is_at(self, number: int, ranks: int) -> bool:
        """Whether this is the last number of each of so many ranks."""
        last = [self.lines(rank)[-1:] for rank in range(ranks)]
        return all(one and one[0][0] == number for one in last)

    async def more(self) -> None:
        """Wait for another line of any rank."""
        heard = len(self._driver.output)
        await self._driver.client.wait_for(
            lambda: len(self._driver.output) > heard, timeout=LIMIT, what="another line"
        )

    def all_of(self, total: int, ranks: int) -> None:
        """The first lines are all there, the last one is, and all of them are counted."""
        assert self.is_at(total - 1, ranks)
        for rank in range(ranks):
            lines = self.lines(rank)
            assert lines[:FIRST_LINES] == [(number, 1) for number in range(FIRST_LINES)]
            assert sum(count for _, count in lines) == total
            assert len(lines) < total // 2


@pytest.mark.heavy
async def test_a_slow_tunnel_is_not_filled(start_ranks: StartRanks, done: Path) -> None:
    """Nor do answers wait for what it says."""
    ranks = await start_ranks(4, PROGRAM, arguments=[str(done), str(TOTAL)])
    line = SharedLine(BYTES_A_SECOND)
    async with (
        proxies([rank.port for rank in ranks]) as tunnels,
        driving(tunnels, {PROGRAM: [LOGPOINT]}) as driver,
    ):
        await driver.live(4)
        for tunnel in tunnels:
            tunnel.down.switch(line)
        heard, most_ahead = Heard(driver), 0
        while not heard.is_at(TOTAL - 1, 4):
            await heard.more()
            asked = line.carried
            answer = await driver.evaluate("ranks(0:4) __import__('os').getpid()", context="repl")
            most_ahead = max(most_ahead, line.carried - asked)
            assert all(str(rank.pid) in answer for rank in ranks), answer
        assert most_ahead < MOST_AHEAD
        assert line.carried < MAX_BYTES
        heard.all_of(TOTAL, 4)
        await driver.ends_well(ranks, done)


@pytest.mark.heavy
async def test_a_pause_and_a_continue_meanwhile(start_ranks: StartRanks, done: Path) -> None:
    """What was said before the stop is told before it."""
    ranks = await start_ranks(2, PROGRAM, arguments=[str(done), str(TOTAL)])
    line = SharedLine(BYTES_A_SECOND)
    async with (
        proxies([rank.port for rank in ranks]) as tunnels,
        driving(tunnels, {PROGRAM: [LOGPOINT]}) as driver,
    ):
        await driver.live(2)
        for tunnel in tunnels:
            tunnel.down.switch(line)
        heard = Heard(driver)
        while not all(len(heard.lines(rank)) > FIRST_LINES for rank in range(2)):
            await heard.more()
        asked = line.carried
        await driver.client.request("pause", {"threadId": driver.row(1)}, timeout=LIMIT)
        await driver.states("stopped", "stopped")
        assert line.carried - asked < MOST_AHEAD
        at = [int(await driver.value(rank, "number")) for rank in range(2)]
        for rank in range(2):
            assert heard.lines(rank)[-1][0] in (at[rank], at[rank] - 1)
        await driver.go_on()
        while not heard.is_at(TOTAL - 1, 2):
            await heard.more()
        heard.all_of(TOTAL, 2)
        await driver.ends_well(ranks, done)


async def test_the_program_ends_with_the_loop(start_ranks: StartRanks, done: Path) -> None:
    let_end(done)
    ranks = await start_ranks(2, PROGRAM, arguments=[str(done), str(BRIEF)])
    async with driving(ranks, {PROGRAM: [LOGPOINT]}) as driver:
        await driver.client.wait_event("terminated", timeout=LIMIT)
        Heard(driver).all_of(BRIEF, 2)
        assert [await rank.ended() for rank in ranks] == [0, 0]
