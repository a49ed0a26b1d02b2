"""Real debugpy at 1, 4 and 32 ranks, all started at the same moment and driven as one."""

from __future__ import annotations

from typing import Final

import pytest

from tests.real.driving import driving, script
from tests.support.processes.commands import line_of
from tests.support.processes.ranks import debugpy_ranks

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(300)]
LIMIT: Final = 60.0  # s; not a wait
TOUR: Final = script("tour")
CALL, PRODUCT, PRINT = (line_of(TOUR, mark) for mark in ("call", "product", "print"))


MANY: Final = pytest.param(32, marks=[pytest.mark.heavy, pytest.mark.long])


@pytest.mark.parametrize("count", [1, 4, MANY])
async def test_stop_step_continue_and_end(count: int) -> None:
    async with (
        debugpy_ranks(count, TOUR) as ranks,
        driving(ranks, {TOUR: [CALL, PRINT]}) as driver,
    ):
        await driver.stopped(CALL, count, within=LIMIT)
        await driver.look(0)
        await driver.control("stepIn")
        await driver.stopped(PRODUCT, count, within=LIMIT)
        for rank in range(0, count, 5):
            assert await driver.value(rank, "width") == str(rank + 1)
        await driver.go_on()
        await driver.stopped(PRINT, count, within=LIMIT)
        await driver.go_on()
        assert [await rank.ended(within=LIMIT) for rank in ranks] == [0] * count
        await driver.client.wait_event("terminated", timeout=LIMIT)
        assert len(driver.events("terminated")) == 1
