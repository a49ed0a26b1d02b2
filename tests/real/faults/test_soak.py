"""Minutes at random: the job never notices, and nothing is left behind.

`DAP_MUX_SOAK_SECONDS` (120, a quarter of it outside CI) is for both tests together,
`DAP_MUX_SOAK_SEED` draws another life; a failure tells its seed and what happened last.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.engine import Settings
from tests.conftest import rounds
from tests.real.driving import StartRanks, script
from tests.support.faults import proxied, proxies
from tests.support.processes.commands import User
from tests.support.processes.proc_net import free_ports
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until
from tests.support.session import session
from tests.support.soak import Soak
from tests.support.soak.soak import open_files

SECONDS: Final = float(os.environ.get("DAP_MUX_SOAK_SECONDS", rounds(120)))
SEED: Final = int(os.environ.get("DAP_MUX_SOAK_SEED", "1"))
LIMIT: Final = 60.0
pytestmark = [
    pytest.mark.heavy,
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(SECONDS + 5 * LIMIT),
]
JOB: Final = script("soak_job")
SIZE: Final = 4
Results = dict[int, Any]


def results(folder: Path) -> Results:
    """What each rank has written."""
    return {int(path.stem): json.loads(path.read_text("ascii")) for path in folder.iterdir()}


async def without_us(folder: Path, words: Sequence[str], *, size: int = SIZE) -> Results:
    """Run the job without any debugger, told to end from the start."""
    out, go = folder / "alone", folder / "alone.go"
    out.mkdir()
    go.touch()
    port = str(free_ports(1))
    started = []
    for rank in range(size):
        env = {"RANK": str(rank), "WORLD_SIZE": str(size), "SOAK_PORT": port}
        command = [sys.executable, JOB, str(go), str(out), *words]
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **env}, stdout=asyncio.subprocess.DEVNULL
        )
        started.append(process)
    assert [await asyncio.wait_for(one.wait(), LIMIT) for one in started] == [0] * size
    return results(out)


@asynccontextmanager
async def unnoticed(
    start_ranks: StartRanks, folder: Path, size: int = SIZE
) -> AsyncIterator[list[Rank]]:
    """Ranks that work alone; they end after the block, with what they write without us."""
    wanted = await without_us(folder, ["alone"], size=size)
    out, go = folder / "out", folder / "go"
    out.mkdir()
    ranks = await start_ranks(size, JOB, wait=False, arguments=[str(go), str(out), "alone"])
    yield ranks
    go.touch()
    assert [await rank.ended(within=LIMIT) for rank in ranks] == [0] * size
    assert results(out) == wanted


@pytest.mark.parametrize(
    ("words", "share"), [((), 0.75), (("alone",), 0.25)], ids=["one-job", "ranks-are-killed"]
)
async def test_nobody_notices(
    user: User,
    start_ranks: StartRanks,
    tmp_path: Path,
    words: tuple[str, ...],
    share: float,
) -> None:
    wanted = await without_us(tmp_path, words)
    assert [one["differed"] for one in wanted.values()] == [0] * SIZE
    out, go = tmp_path / "out", tmp_path / "go"
    out.mkdir()
    ranks = await start_ranks(
        SIZE,
        JOB,
        wait=False,
        env={"SOAK_PORT": str(free_ports(1))},
        arguments=[str(go), str(out), *words],
    )
    files, tasks = open_files(), asyncio.all_tasks()
    killed = await soak(user, ranks, SECONDS * share, kills=bool(words))
    go.touch()
    codes = {rank.rank: await rank.ended(within=LIMIT) for rank in ranks}
    assert codes == {rank.rank: -9 if rank.rank in killed else 0 for rank in ranks}
    assert results(out) == {rank: one for rank, one in wanted.items() if rank not in killed}
    await nothing_is_left(files, tasks)


async def soak(user: User, ranks: list[Rank], seconds: float, *, kills: bool) -> set[int]:
    """Live at random for so long; return who was killed."""
    settings = Settings(backoff_most=2.0)
    async with (
        proxies([rank.port for rank in ranks]) as tunnels,
        session([tunnel.port for tunnel in tunnels], settings=settings) as running,
        proxied(running.port) as line,
    ):
        life = Soak(SEED, running, ranks, tunnels, line, user, JOB, kills=kills)
        try:
            await life.run(seconds, stops=seconds / 5, faults=seconds / 10)
            core = running.engine.core
            assert not len(core.handles), "handles are left"
            assert not running.driver._deadlines
            assert not running.driver._connecting
        finally:
            print(life.story())  # pytest shows it where the test fails
        assert life.counts["stop"] > seconds / 5, "hardly anything happened"
        assert life.counts["fault"] > seconds / 10, "hardly anything broke"
        return life.killed


async def nothing_is_left(files: dict[str, str], tasks: set[asyncio.Task[Any]]) -> None:
    """No task, socket or file of ours is there that was not before."""
    current = asyncio.current_task()

    def left() -> list[asyncio.Task[Any]]:
        return [task for task in asyncio.all_tasks() - tasks if task is not current]

    await until(lambda: not left(), within=LIMIT, what=f"no task is left: {left()}")
    gc.collect()
    new = set(open_files()) - set(files)
    await until(
        lambda: not set(open_files()) - set(files),
        within=LIMIT,
        what=f"no file is left open: {new}",
    )
