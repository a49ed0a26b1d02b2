"""A step that waits for a thread that is held, beside debugpy itself, and one that is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from tests.conftest import Connect
from tests.real.debugging.tour_program import CALL, finished, tour
from tests.real.driving import Driver, script
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import Rank, debugpy_ranks
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROGRAM: Final = script("two_threads")
FIRST: Final = line_of(PROGRAM, "first")


@asynccontextmanager
async def held(connect: Connect, *, direct: bool) -> AsyncIterator[tuple[DapClient, Rank]]:
    """Both threads stand, the first at its line; a step of one lets no other run."""
    async with debugpy_ranks(1, PROGRAM) as ranks:
        attach: dict[str, Any] = {"justMyCode": False, "steppingResumesAllThreads": False}
        lines = {PROGRAM: [FIRST]}
        if direct:
            client = await connect(ranks[0].port, strict=False)
            await client.handshake(attach, breakpoints=lines, timeout=LIMIT)
            await client.wait_event("stopped", timeout=LIMIT)
            yield client, ranks[0]
            return
        async with session([ranks[0].port]) as running:
            driver = await Driver.attach(running, breakpoints=lines, **attach)
            await driver.client.wait_event("stopped", timeout=LIMIT)
            yield driver.client, ranks[0]


async def threads(client: DapClient) -> dict[str, int]:
    body = await client.request("threads", timeout=LIMIT)
    return {one["name"]: one["id"] for one in body["threads"]}


each_side = pytest.mark.parametrize(
    "direct",
    [pytest.param(True, id="debugpy", marks=pytest.mark.heavy), pytest.param(False, id="session")],
)


@each_side
async def test_continue_ends_a_step_that_waits(connect: Connect, direct: bool) -> None:
    """The step waits for the thread that is held, and continue lets both go: the program ends."""
    async with held(connect, direct=direct) as (client, rank):
        rows = await threads(client)
        await client.request("stepOut", {"threadId": rows["first"]}, timeout=LIMIT)
        told = await client.wait_event("continued", timeout=LIMIT)
        assert told["threadId"] == rows["first"]
        client.send("continue", {"threadId": rows["first"]})  # debugpy answers at the very end
        assert await rank.ended(within=LIMIT) == 0


@each_side
async def test_the_held_thread_steps_too(connect: Connect, direct: bool) -> None:
    """So the one that waits for it arrives: the first is told to have stopped, or the second."""
    async with held(connect, direct=direct) as (client, rank):
        rows = await threads(client)
        await client.request("stepOut", {"threadId": rows["first"]}, timeout=LIMIT)
        await client.wait_event("continued", timeout=LIMIT)
        await client.request("stepOut", {"threadId": rows["second"]}, timeout=LIMIT)
        told = await client.wait_event("stopped", timeout=LIMIT)
        assert told["threadId"] in (rows["first"], rows["second"])
        assert told["reason"] == "step"
        client.send("continue", {"threadId": told["threadId"]})
        assert await rank.ended(within=LIMIT) == 0


async def test_a_refused_step_leaves_all_as_it_was() -> None:
    """The target is another frame's: debugpy refuses, the rank stands, and then runs on."""
    async with tour(CALL) as (driver, ranks):
        await driver.stopped(CALL)
        frames = await driver.frames(1)
        ask = driver.client.request
        targets = (await ask("stepInTargets", {"frameId": frames[0]["id"]}))["targets"]
        for frame in frames[1:]:  # debugpy keeps the targets of the last frame only
            last = (await ask("stepInTargets", {"frameId": frame["id"]}))["targets"]
            if len(last) < len(targets):
                break
        before = len(driver.events("stopped"))
        await driver.control("stepIn", 1, targetId=targets[-1]["id"], singleThread=True)
        await driver.client.wait_for(
            lambda: "rank 1 refused 'stepIn': Unable to" in driver.output,
            timeout=LIMIT,
            what="why it refuses",
        )
        await driver.client.wait_for(
            lambda: len(driver.events("stopped")) > before, timeout=LIMIT, what="the stop again"
        )
        assert [one["state"] for one in await driver.entries()] == ["stopped"] * 4
        assert await driver.value(1, "1 + 1") == "2"
        await driver.control("continue")
        await finished(ranks)
