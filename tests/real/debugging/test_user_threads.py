"""Rows for the threads of a rank that stand in user code: real ranks with task threads."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.engine import Settings, inputs
from dap_mux.pure.endpoint import NO_TRAITS, Endpoint, Traits
from tests.real.driving import Driver, script
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import Rank, debugpy_ranks
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROGRAM: Final = script("task_threads")
WORK: Final = line_of(PROGRAM, "work")
TASK_THREADS: Final = Traits(user_threads=("Task-Threads*",))
Rows = dict[str, int]


@asynccontextmanager
async def stopped(
    count: int,
    *,
    threads: str = "auto",
    traits: Traits = NO_TRAITS,
    program: str = PROGRAM,
    line: int = WORK,
    arguments: Sequence[str] = (),
) -> AsyncIterator[tuple[Driver, list[Rank]]]:
    """All ranks are stopped at the line, in one of their task threads at least."""
    async with (
        debugpy_ranks(count, program, arguments=arguments) as ranks,
        session(settings=Settings(threads=threads)) as running,
    ):
        for number, rank in enumerate(ranks):
            endpoint = Endpoint("127.0.0.1", rank.port, ready=True, traits=traits)
            running.driver.feed(inputs.RankKnown(("job", number), endpoint))
        driver = await Driver.attach(running, breakpoints={program: [line]})
        await driver.states(*["stopped"] * count)
        yield driver, ranks


async def rows(client: DapClient) -> Rows:
    body = await client.request("threads", timeout=LIMIT)
    return {one["name"]: one["id"] for one in body["threads"]}


async def rows_are(client: DapClient, wanted: Callable[[Rows], bool]) -> Rows:
    """Wait for them: a thread may come to its line after the rank has stopped in another."""
    found: Rows = {}

    async def holds() -> bool:
        found.clear()
        found.update(await rows(client))
        return wanted(found)

    while not await holds():
        await client.wait_event("stopped", timeout=LIMIT)
    return found


async def value(client: DapClient, row: int, expression: str, function: str = "work") -> str:
    """In the innermost frame of the user's function."""
    stack = await client.request("stackTrace", {"threadId": row}, timeout=LIMIT)
    frame = next(one["id"] for one in stack["stackFrames"] if one["name"] == function)
    asked = {"expression": expression, "frameId": frame, "context": "watch"}
    return str((await client.request("evaluate", asked, timeout=LIMIT))["result"])


async def test_each_task_thread_of_each_rank_is_a_row_that_steps_by_itself() -> None:
    """Two task threads work, one is idle; the main thread and the monitor run none of the tasks.

    A step is of its row's own thread, and `continue` ends all.
    """
    async with stopped(2, traits=TASK_THREADS) as (driver, ranks):
        client = driver.client
        found = await rows_are(client, lambda now: len(now) == 4)
        assert sorted(name.partition(" / ")[0] for name in found) == ["rank 0"] * 2 + ["rank 1"] * 2
        assert all("Task-Threads_" in name for name in found)
        assert {driver.row(0), driver.row(1)} < set(found.values())
        shards = {name: await value(client, row, "shard") for name, row in found.items()}
        for rank in ("rank 0", "rank 1"):
            assert sorted(shards[name] for name in shards if name.startswith(rank)) == ["0", "1"]
        await step_one(driver, found)
        assert [await rank.ended(within=LIMIT) for rank in ranks] == [0, 0]
        assert all("3\n" in rank.output for rank in ranks)


async def step_one(driver: Driver, found: Rows) -> None:
    """Step the thread of rank 0 that has a row beside its rank's, and let all run on."""
    client, first = driver.client, driver.row(0)
    row = next(id for name, id in found.items() if name.startswith("rank 0") and id != first)
    shard = await value(client, row, "shard")
    while "total" not in await value(client, row, "sorted(locals())"):
        await client.request("next", {"threadId": row, "singleThread": True}, timeout=LIMIT)
        await driver.states("stopped", "stopped")
    assert driver.stops[-1] == row
    assert await value(client, row, "(shard, total)") == f"({shard}, {int(shard) + 1})"
    await client.request("continue", {"threadId": row}, timeout=LIMIT)


async def test_without_names_any_thread_in_user_code_is_a_row() -> None:
    """The main thread waits in user code; the idle task thread and the monitor are in libraries."""
    async with stopped(2, threads="user") as (driver, _):
        found = await rows_are(driver.client, lambda now: len(now) == 6)
        names = sorted(name for name in found if name.startswith("rank 0"))
        assert names[0] == "rank 0 / MainThread"
        assert found[names[0]] == driver.row(0)
        assert [name.rpartition("_")[0] for name in names[1:]] == ["rank 0 / Task-Threads"] * 2


async def test_a_thread_that_comes_to_user_code_after_the_stop_gets_its_row(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = script("late_thread")
    ready = line_of(program, "ready")
    late = stopped(2, threads="user", program=program, line=ready, arguments=[str(pipe)])
    async with late as (driver, _):
        client = driver.client
        assert await rows(client) == {"rank 0": driver.row(0), "rank 1": driver.row(1)}
        pipe.write_text("first\nsecond\n")
        found = await rows_are(client, lambda now: len(now) > 2)
        row = next(id for name, id in found.items() if name.endswith(" / late"))
        assert await value(client, row, "line", "handle") in ("'first\\n'", "'second\\n'")
        assert driver.events("stopped")[-1]["preserveFocusHint"] is True
