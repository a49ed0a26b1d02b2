"""Row of the fault table: a program that prints much more than a slow tunnel carries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from tests.real.driving import Driver, let_end, script
from tests.real.ranks.agents import Start
from tests.support.faults import PASS, Rate, proxied
from tests.support.processes import proc_net
from tests.support.processes.commands import LIMIT, line_of
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.slow, pytest.mark.timeout(180)]
PROGRAM: Final = script("prints_at_once")
TOTAL: Final = 2_000  # lines of 1 kB: less than a rank keeps, and 40 s of the tunnel
BYTES_A_SECOND: Final = 50_000
NUMBER: Final = re.compile(r"line (\d+) ")
MOST_AHEAD: Final = 200  # lines behind which an answer comes: 4 s of the tunnel
MOST_BEFORE: Final = TOTAL // 2


async def test_answers_and_stops_overtake_it(start: Start, done: Path) -> None:
    """The stop behind the last line, and an answer, come long before that line."""
    port = proc_net.free_ports(1)
    rank = await start("--wait", "--port", str(port), PROGRAM, str(done), str(TOTAL))
    async with proxied(port) as tunnel, session([tunnel.port]) as running:
        tunnel.down.switch(Rate(BYTES_A_SECOND))
        breakpoints = {PROGRAM: [line_of(PROGRAM, "printed")]}
        driver = await Driver.attach(running, breakpoints=breakpoints, redirectOutput=True)
        await driver.states("stopped", within=LIMIT)
        for _ in range(3):
            asked = len(NUMBER.findall(driver.output))
            assert await driver.value(0, "printed") == "True"
            assert len(NUMBER.findall(driver.output)) - asked < MOST_AHEAD
        assert len(NUMBER.findall(driver.output)) < MOST_BEFORE
        tunnel.down.switch(PASS)
        await driver.client.wait_event(
            "output", lambda body: f"line {TOTAL - 1} " in body["output"], timeout=LIMIT
        )
        assert [int(number) for number in NUMBER.findall(driver.output)] == [*range(TOTAL)]
        let_end(done)
        await driver.client.request(
            "setBreakpoints", {"source": {"path": PROGRAM}, "breakpoints": []}, timeout=LIMIT
        )
        await driver.go_on()
        assert await rank.ends() == 0
