"""Four ranks in a real all-reduce, of which the last comes late: stepping never hangs or splits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

import pytest

from dap_mux.client import Json
from tests.real.driving import Driver, brief, driving, script
from tests.support.processes import proc_net
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import Rank, debugpy_ranks

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]
PROGRAM: Final = script("all_reduce")
LATE, REDUCE, COUNT = (line_of(PROGRAM, mark) for mark in ("late", "reduce", "count"))
TIMES: Final = 20
RANKS: Final = 4
# Whether a rank is within its `recv`: only there has it given the GIL away at a call.
RECEIVES: Final = (
    "(lambda f: f.f_code.co_name == 'receive' and any('CALL' in one.opname for one in"
    " __import__('dis').get_instructions(f.f_code) if one.offset == f.f_lasti))"
    "(__import__('sys')._current_frames()[__import__('threading').main_thread().ident])"
)
TOTAL: Final = sum(range(RANKS)) + RANKS * (TIMES - 1)  # of the last time


@pytest.fixture
async def ranks() -> AsyncIterator[list[Rank]]:
    port = {"MASTER_PORT": str(proc_net.free_ports(1))}
    async with debugpy_ranks(RANKS, PROGRAM, env=port, arguments=[str(TIMES)]) as started:
        yield started


@pytest.fixture
async def driver(ranks: list[Rank]) -> AsyncIterator[Driver]:
    """All four stand before their first all-reduce; the breakpoint is gone."""
    async with driving(ranks, {PROGRAM: [LATE]}, stopped=LATE) as driver:
        assert await driver.value(0, "done") == "0"  # the user is at rank 0
        await driver.client.request("setBreakpoints", {"source": {"path": PROGRAM}})
        yield driver


async def step(driver: Driver) -> None:
    """Step as a user does: press the key, look where the editor goes, do not look at others."""
    focus, seen = driver.focus, len(driver.stops)
    await driver.control("next")
    await driver.client.wait_for(
        lambda: focus in driver.stops[seen:], timeout=LIMIT, what="the next stop"
    )


async def blocks(driver: Driver, rank: int) -> None:
    """Wait until a rank is where no pause reaches it; before that it is still on its way there."""
    asked = {"ranks": str(rank), "command": f"p {RECEIVES}", "timeout": LIMIT}
    deadline = time.monotonic() + LIMIT
    while (told := await driver.client.request("cast", asked))["results"][0]["value"] != "True":
        assert time.monotonic() < deadline, told
        await asyncio.sleep(0.02)


async def end_well(ranks: list[Rank]) -> None:
    for rank in ranks:
        assert await rank.ended() == 0
        assert f"total {TOTAL}" in rank.output


@pytest.mark.heavy
async def test_stepping_over_an_all_reduce_twenty_times(ranks: list[Rank], driver: Driver) -> None:
    for done in range(TIMES):
        for line in (REDUCE, COUNT):
            await step(driver)
            assert (await driver.frames(0, levels=1))[0]["line"] == line
        await driver.stopped(COUNT)  # once all have arrived they stand together again
        wanted = str(sum(range(RANKS)) + RANKS * done)
        assert [await driver.value(rank, "total") for rank in range(RANKS)] == [wanted] * RANKS
        await driver.value(0, "total")  # the user is at rank 0 again
        await step(driver)
        await step(driver)
    await driver.control("continue")
    await end_well(ranks)


async def one_steps_alone(driver: Driver) -> list[Json]:
    """Rank 1 steps into the all-reduce, and waits there for the others; what `list` says then."""
    await step(driver)
    await driver.stopped(REDUCE)
    await driver.control("next", 1, singleThread=True)
    return await driver.states("stopped", "running", "stopped", "stopped")


@pytest.mark.heavy
async def test_one_rank_alone_is_shown_as_it_is_and_who_lets_it_on(
    ranks: list[Rank], driver: Driver
) -> None:
    """Users are told for whom it waits; those step, too, or `release` frees all."""
    await one_steps_alone(driver)
    told = await driver.client.wait_event(
        "output", lambda body: "wait" in body["output"], timeout=LIMIT
    )
    assert told["output"] == (
        "dap-mux: rank 1 waits in all_reduce for ranks 0,2-3, which stand at "
        f"all_reduce.py:{REDUCE}; `cast 0,2-3 n` lets all on\n"
    )
    entries = await driver.states("stopped", "running", "stopped", "stopped")
    assert entries[1]["reason"] == "waits in all_reduce for ranks 0,2-3"
    await driver.client.request("cast", {"ranks": "0,2-3", "command": "n", "timeout": LIMIT})
    await driver.stopped(COUNT)
    await driver.value(0, "total")  # the user is at rank 0 again
    await step(driver)
    await step(driver)
    entries = await one_steps_alone(driver)
    assert [entry["line"] for entry in entries] == [REDUCE, None, REDUCE, REDUCE]
    await blocks(driver, 1)
    await driver.control("pause", 1, singleThread=True)
    await driver.states("stopped", "pausing", "stopped", "stopped")
    assert await driver.evaluate("6 * 7") == "42", brief(await driver.entries())
    await driver.client.request("release", {"ranks": "all"})
    await end_well(ranks)
