"""Eight real ranks at barrier and differ breakpoints: together or not at all."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from typing import Final

import pytest

from dap_mux.client import Json
from dap_mux.engine import Settings
from tests.conftest import rounds
from tests.real.driving import Driver, brief, driving, script
from tests.support.combinations import rest
from tests.support.processes import proc_net
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import Rank, Style, debugpy_ranks

ROUNDS: Final = int(os.environ.get("DIFFER_ROUNDS", "1"))  # 50 take a quarter of an hour
pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(600 + 60 * ROUNDS)]
PROGRAM: Final = script("all_reduce")
SLEEP, REDUCE, COUNT = (line_of(PROGRAM, mark) for mark in ("sleep", "reduce", "count"))
RANKS: Final = 8
TIMES: Final = int(os.environ.get("BARRIER_ROUNDS", rounds(10)))
SETS: Final = int(os.environ.get("BARRIER_SETS", rounds(20)))  # into a job that runs
STEPS: Final = 1000
ODD: Final = 137
LOSS: Final = f"total + (RANK == 5 and done % {STEPS} == {ODD})"


def eight(
    times: int, style: Style = "module", **more: str
) -> AbstractAsyncContextManager[list[Rank]]:
    env = {"MASTER_PORT": str(proc_net.free_ports(1)), **more}
    return debugpy_ranks(RANKS, PROGRAM, env=env, arguments=[str(times)], style=style)


async def set_at(driver: Driver, *breakpoints: Json) -> None:
    asked = {"source": {"path": PROGRAM}, "breakpoints": list(breakpoints)}
    await driver.client.request("setBreakpoints", asked, timeout=LIMIT)


async def next_stop(driver: Driver, seen: int) -> Json:
    """The stop that follows the first `seen`."""

    def there() -> bool:
        return len(driver.events("stopped")) > seen

    try:
        await driver.client.wait_for(there, timeout=2 * LIMIT, what=f"stop {seen + 1}")
    except TimeoutError:
        # It was seen once in 130 runs, on a busy machine; say who was missing, and where.
        pytest.fail(f"no stop {seen + 1}: {brief(await driver.entries())}; {driver.output}")
    return driver.events("stopped")[seen]


async def values(driver: Driver, expression: str) -> list[tuple[str, str]]:
    """The ranks and what they have, most first."""
    asked = {"ranks": "all", "expression": expression}
    body = await driver.client.request("compare", asked, timeout=LIMIT)
    assert not body["errors"]
    assert not body["missing"]
    return [(one["ranks"], one["value"]) for one in body["values"]]


async def test_all_eight_stop_together() -> None:
    """Each comes late by itself, and every stop is one of all eight, at the same time."""
    barrier = {"line": REDUCE, "condition": "barrier"}
    async with (
        eight(TIMES, ALL_LATE="1", MOST_LATE="0.3") as ranks,
        driving(ranks, {PROGRAM: [barrier]}) as driver,
    ):
        for done in range(TIMES):
            told = await next_stop(driver, done)
            assert told["description"] == f"At barrier {RANKS}/{RANKS}"
            entries = await driver.entries()
            assert [(one["state"], one["line"]) for one in entries] == [("stopped", REDUCE)] * 8
            assert await values(driver, "done") == [("0-7", str(done))]
            await driver.control("continue")
        assert [await rank.ended() for rank in ranks] == [0] * RANKS
        assert len(driver.events("stopped")) == TIMES


async def test_a_missing_rank_is_named_and_a_dead_one_is_not_waited_for() -> None:
    """Rank 7 sleeps for long: users are told where. When it is killed the others stop."""
    barrier = {"line": REDUCE, "condition": "barrier"}
    async with (
        eight(TIMES, MOST_LATE="100000") as ranks,
        driving(ranks, {PROGRAM: [barrier]}, settings=Settings(barrier_timeout=2.0)) as driver,
    ):
        await driver.until(lambda entries: {e["reason"] for e in entries[:7]} == {"barrier 7/8"})
        said = f"dap-mux: barrier 7/8 at line {REDUCE} for 2 s; missing: rank 7 running at "
        await driver.client.wait_for(lambda: said in driver.output, timeout=LIMIT, what=said)
        assert f"{said}all_reduce.py:{SLEEP} in come_late; `cast 0-6 c` lets" in driver.output
        assert driver.events("stopped") == []
        ranks[7].process.kill()
        told = await next_stop(driver, 0)
        assert (told["description"], told["text"]) == ("At barrier 7/7", "without rank 7")
        entries = await driver.entries()
        assert [(one["state"], one["line"]) for one in entries[:7]] == [("stopped", REDUCE)] * 7
        assert len(driver.events("stopped")) == 1


@pytest.mark.heavy
@pytest.mark.parametrize("style", ["agent", rest("module")])
async def test_a_loss_that_differs_is_found(style: Style) -> None:
    """At step 137 of 1,000, and nowhere else; nobody is left behind in the all-reduce."""
    differ = {"line": COUNT, "condition": f"differ: {LOSS}"}
    async with (
        eight(ROUNDS * STEPS, style, MOST_LATE="0") as ranks,
        driving(ranks, {PROGRAM: [differ]}) as driver,
    ):
        for round in range(ROUNDS):
            told = await next_stop(driver, round)
            entries = await driver.entries()
            assert [(one["state"], one["line"]) for one in entries] == [("stopped", COUNT)] * 8
            assert await values(driver, "done") == [("0-7", str(round * STEPS + ODD))]
            (_, usual), (_, odd) = await values(driver, LOSS)
            assert told["text"].endswith(f", rank 5: {odd}; ranks 0-4,6-7: {usual}")
            await driver.control("continue")
        assert [await rank.ended(within=500) for rank in ranks] == [0] * RANKS
        assert len(driver.events("stopped")) == ROUNDS


@pytest.mark.parametrize(
    "step", [0.001, *(pytest.param(step, marks=pytest.mark.heavy) for step in (0.002, 0.05))]
)
async def test_set_into_a_job_that_runs(step: float) -> None:
    """Some ranks have passed the line then, and wait for the others: all meet at the next step."""
    conditions = [condition for _ in range(SETS) for condition in ("barrier", "differ: RANK")]
    async with (
        debugpy_ranks(
            4,
            PROGRAM,
            env={"MASTER_PORT": str(proc_net.free_ports(1)), "MOST_LATE": "0", "STEP": str(step)},
            arguments=["1000000"],
        ) as ranks,
        driving(ranks) as driver,
    ):
        done = -1
        for number, condition in enumerate(conditions):
            await driver.until(lambda entries: {one["state"] for one in entries} == {"running"})
            await set_at(driver, {"line": REDUCE, "condition": condition})
            await next_stop(driver, number)
            entries = await driver.entries()
            assert [(one["state"], one["line"]) for one in entries] == [("stopped", REDUCE)] * 4
            ((_, now),) = await values(driver, "done")
            assert int(now) > done
            done = int(now)
            await set_at(driver)
            await driver.control("continue")
