"""What a session leaves in a rank: nothing that the next debugger would notice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.engine import Settings
from tests.real.driving import Driver, line_of, script
from tests.real.test_ranks_come_and_go import let_end
from tests.support.ranks import Rank
from tests.support.session import session
from tests.support.waiting import until

pytestmark = pytest.mark.real
StartRanks = Callable[..., Awaitable[list[Rank]]]
PROGRAM: Final = script("until_told")
COUNT: Final = {PROGRAM: [line_of(PROGRAM, "count")]}
LIMIT: Final = 30.0  # s; not a wait


async def test_the_next_debugger_gets_debugpys_own_events(
    start_ranks: StartRanks, tmp_path: Path
) -> None:
    """We teach a rank to step in few messages; whoever comes after us need not know of that."""
    done = tmp_path / "done"
    (rank,) = await start_ranks(1, PROGRAM, arguments=[str(done)])
    async with session([rank.port]) as running:
        driver = await Driver.attach(running, breakpoints=COUNT)
        await driver.states("stopped")
        (taught,) = running.engine.core.ranks.values()
        await until(lambda: taught.cured is not None, within=LIMIT, what="it is taught")
        assert taught.cured
        await driver.leave()
    await asyncio.sleep(Settings().reconnect_gap)  # no process can connect sooner (K4)
    stock = await DapClient.connect("127.0.0.1", rank.port)
    await stock.handshake({"justMyCode": False}, breakpoints=COUNT, timeout=LIMIT)
    stop = await stock.wait_event("stopped", timeout=LIMIT)
    assert not {"stackFrames", "lineText"} & stop.keys()
    await stock.request("next", {"threadId": stop["threadId"]}, timeout=LIMIT)
    await stock.wait_event("continued", timeout=LIMIT)
    await stock.disconnect(timeout=LIMIT)
    let_end(done)
    assert await rank.ended() == 0
