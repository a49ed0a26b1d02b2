"""Exceptions that a framework swallows stop the rank, where the source says that it does so.

What each client is offered and chooses is in the engine's test of the same name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient
from dap_mux.client.client import default_filters
from dap_mux.engine import inputs
from dap_mux.engine.inputs import Settings
from dap_mux.pure.endpoint import Endpoint, read_traits
from tests.real.driving import Driver, ends_well, script
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import Rank, debugpy_ranks
from tests.support.session import Session, session

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
PROGRAM: Final = script("swallowed")
RAISES: Final = line_of(PROGRAM, "raises")
SWALLOWING: Final = read_traits({"swallowsExceptions": True})
DEFAULTS: Final = ["uncaught", "userUnhandled"]


@asynccontextmanager
async def job(done: Path) -> AsyncIterator[tuple[Session, list[Rank]]]:
    """Two ranks of a source that knows of it, however far apart a busy machine lets them stop."""
    settings = Settings(settle=2.0, late_settle=2.0)
    async with (
        debugpy_ranks(2, PROGRAM, arguments=[str(done)]) as ranks,
        session(settings=settings) as running,
    ):
        for number, rank in enumerate(ranks):
            endpoint = Endpoint("127.0.0.1", rank.port, ready=True, traits=SWALLOWING)
            running.driver.feed(inputs.RankKnown(("job", number), endpoint))
        yield running, ranks


async def test_equal_ones_of_all_ranks_are_one_stop_in_the_users_frame(done: Path) -> None:
    async with job(done) as (running, ranks):
        client = await running.client()
        offered = await client.handshake(
            {"justMyCode": True}, exception_filters=DEFAULTS, timeout=LIMIT
        )
        assert default_filters(offered) == DEFAULTS
        driver = Driver(running, client)
        entries = await driver.stopped(RAISES, 2)
        assert [entry["reason"] for entry in entries] == ["exception"] * 2
        assert await driver.value(1, "number") == "0"
        about = await client.request("exceptionInfo", {"threadId": driver.row(0)}, timeout=LIMIT)
        assert about["exceptionId"].startswith("ZeroDivisionError")
        assert len({body["threadId"] for body in driver.events("stopped")}) == 1
        await choose(client, [])
        await driver.go_on()
        await ends_well(ranks, done)


async def choose(client: DapClient, filters: list[str]) -> None:
    await client.request("setExceptionBreakpoints", {"filters": filters}, timeout=LIMIT)


async def test_a_client_that_was_there_before_is_told_and_need_not_choose(done: Path) -> None:
    """Its editor has asked for the defaults of then, and asks no more; what it chooses counts."""
    async with debugpy_ranks(1, PROGRAM, arguments=[str(done)]) as ranks, session() as running:
        client = await running.client()
        offered = await client.handshake({"justMyCode": True}, timeout=LIMIT)
        assert default_filters(offered) == ["uncaught"]
        endpoint = Endpoint("127.0.0.1", ranks[0].port, ready=True, traits=SWALLOWING)
        running.driver.feed(inputs.RankKnown(("job", 0), endpoint))
        told = await client.wait_event("capabilities", timeout=LIMIT)
        assert default_filters(told["capabilities"]) == DEFAULTS
        driver = Driver(running, client)
        await driver.stopped(RAISES, 1)
        await choose(client, ["uncaught"])
        await driver.go_on()
        await ends_well(ranks, done)
        assert len(driver.events("stopped")) == 1
