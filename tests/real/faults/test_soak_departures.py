"""A client attaches and leaves, again and again: no rank is hurt by it, and the job never notices.

`make soak SCENE=departures MINUTES=30` runs it for longer, and prints how often ranks were left.
What hurts one rank in thousands of departures shows only there.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.real.driving import Driver, StartRanks
from tests.real.faults.test_soak import LIMIT, SIZE, unnoticed
from tests.support.session import session

SECONDS: Final = float(os.environ.get("DAP_MUX_SOAK_SECONDS", "10"))
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(SECONDS + 5 * LIMIT),
]


async def test_no_rank_is_hurt(
    start_ranks: StartRanks, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    departures = 0
    async with (
        unnoticed(start_ranks, tmp_path) as ranks,
        session([rank.port for rank in ranks]) as running,
    ):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            driver = await Driver.attach(running)
            await driver.live(SIZE, within=LIMIT)
            await driver.leave()
            departures += SIZE
            hurt = [rank.output for rank in ranks if "Traceback" in rank.output]
            assert hurt == [], f"after {departures} departures"
            assert all(rank.running for rank in ranks), f"after {departures} departures"
    with capfd.disabled():
        print(f"\n{departures:,} departures of a rank", file=sys.stderr)
    assert departures > SIZE
