"""Simulated and real ranks, three clients, and faults at random: nothing grows, nobody is unheard.

`make soak SCENE=mixed MINUTES=60` runs it for longer. `DAP_MUX_SOAK_SEED` draws another life; the
seed is printed with what the session held after each.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.real.driving import let_end
from tests.real.faults.test_soak import JOB, LIMIT, SEED, results, without_us
from tests.support.faults import proxies
from tests.support.processes.proc_net import free_ports
from tests.support.soak.commanded import commanded
from tests.support.soak.mixed import MixedLife
from tests.support.soak.restarted_ranks import RestartedRanks

SECONDS: Final = float(os.environ.get("DAP_MUX_SOAK_SECONDS", "120"))
SIMULATED: Final = 64
REAL: Final = 8
SIZE: Final = SIMULATED + REAL
pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.heavy,
    pytest.mark.timeout(SECONDS + 10 * LIMIT),
]


async def test_nothing_grows(tmp_path: Path, done: Path, capfd: pytest.CaptureFixture[str]) -> None:
    alone = await without_us(tmp_path, ["alone"], size=SIZE)
    wanted = {rank: one for rank, one in alone.items() if rank >= SIMULATED}
    out = tmp_path / "out"
    out.mkdir()
    package = "tests.support.soak"
    async with AsyncExitStack() as stack:
        real = RestartedRanks(stack, SIZE, SIMULATED, JOB, [str(done), str(out), "alone"])
        ports = await asyncio.gather(*map(real.start, range(REAL)))
        tunnels = await stack.enter_async_context(proxies(ports))
        first = free_ports(SIMULATED)
        simulated = await stack.enter_async_context(
            commanded(f"{package}.simulated_ranks", first, SIMULATED, log=tmp_path / "sim.log")
        )
        session = await stack.enter_async_context(
            commanded(f"{package}.measured_session", log=tmp_path / "session.log")
        )
        ports = [*range(first, first + SIMULATED), *(tunnel.port for tunnel in tunnels)]
        for rank, port in enumerate(ports):
            await session.ask("known", rank, port)
        life = MixedLife(SEED, session, simulated, SIMULATED, first, real, tunnels, JOB)
        try:
            await life.run(SECONDS)
        finally:
            with capfd.disabled():
                print(f"\n{life.report()}", file=sys.stderr)
            print(life.story())  # pytest shows it where the test fails
        assert life.complaints() == []
        assert await simulated.ask("wedged") == []
        let_end(done)
        codes = [await real.ranks[place].ended(within=LIMIT) for place in range(REAL)]
        assert codes == [0] * REAL
        assert results(out) == wanted
