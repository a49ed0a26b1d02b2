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
from tests.real.faults.test_soak import JOB, results, without_us
from tests.support.session import session

SECONDS: Final = float(os.environ.get("DAP_MUX_SOAK_SECONDS", "10"))
SIZE: Final = 4
LIMIT: Final = 60.0  # s; not a wait
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(SECONDS + 5 * LIMIT),
]


async def test_no_rank_is_hurt(
    start_ranks: StartRanks, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wanted = await without_us(tmp_path, ["alone"])
    out, go = tmp_path / "out", tmp_path / "go"
    out.mkdir()
    ranks = await start_ranks(SIZE, JOB, wait=False, arguments=[str(go), str(out), "alone"])
    departures, until = 0, time.monotonic() + SECONDS
    async with session([rank.port for rank in ranks]) as running:
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
    go.touch()
    assert [await rank.ended(within=LIMIT) for rank in ranks] == [0] * SIZE
    assert results(out) == wanted
