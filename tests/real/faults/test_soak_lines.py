"""Lines cut every few seconds, at any time: no rank is away for long, and the job never notices.

`make soak SCENE=lines MINUTES=30` runs it for longer, and prints how long each rank was away.
`DAP_MUX_SOAK_SEED` draws other cuts.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.real.driving import StartRanks, driving
from tests.real.faults.test_soak import LIMIT, SEED, unnoticed
from tests.support.faults import proxies
from tests.support.soak.lines import LineSoak

SECONDS: Final = float(os.environ.get("DAP_MUX_SOAK_SECONDS", "40"))
SIZE: Final = 12  # each line is cut by itself: as many cuts as of four in two minutes
MOST_AWAY_S: Final = 20.0
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.alone,
    pytest.mark.timeout(SECONDS + 5 * LIMIT),
]


async def test_no_rank_is_away_for_long(
    start_ranks: StartRanks, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with (
        unnoticed(start_ranks, tmp_path, SIZE) as ranks,
        proxies([rank.port for rank in ranks]) as tunnels,
        driving(tunnels) as driver,
    ):
        await driver.live(SIZE, within=LIMIT)
        soak = LineSoak(SEED, driver.session, tunnels, driver)
        try:
            await soak.run(SECONDS)
        finally:
            with capfd.disabled():
                print(f"\n{soak.report()}", file=sys.stderr)
        story = "\n".join([soak.report(), *soak.told])
        assert soak.longest <= MOST_AWAY_S, story
        assert [len(times) > SECONDS / 30 for times in soak.away.values()] == [True] * SIZE, story
        await driver.leave()
