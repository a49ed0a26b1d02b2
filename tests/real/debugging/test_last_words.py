"""The order of what a client is told, the same from a session as from debugpy itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dap_mux.client import DapClient
from tests.conftest import Connect
from tests.real.debugging.tour_program import AFTER, CALL, TOUR
from tests.real.driving import driving
from tests.support.processes.commands import LIMIT
from tests.support.processes.ranks import debugpy_ranks

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
each_side = pytest.mark.parametrize(
    "direct",
    [pytest.param(True, id="debugpy", marks=pytest.mark.heavy), pytest.param(False, id="session")],
)


@asynccontextmanager
async def standing(connect: Connect, *, direct: bool) -> AsyncIterator[tuple[DapClient, int]]:
    """One rank that stands in the tour, and the thread that does."""
    async with debugpy_ranks(1, TOUR) as ranks:
        lines = {TOUR: [CALL]}
        if direct:
            client = await connect(ranks[0].port, strict=False)
            await client.handshake({"justMyCode": False}, breakpoints=lines, timeout=LIMIT)
            stop = await client.wait_event("stopped", timeout=LIMIT)
            yield client, stop["threadId"]
            return
        async with driving([ranks[0].port], lines) as driver:
            stop = await driver.client.wait_event("stopped", timeout=LIMIT)
            yield driver.client, stop["threadId"]


@each_side
async def test_a_goto_runs_on_and_stops_and_a_disconnect_terminates(
    connect: Connect, direct: bool
) -> None:
    """`continued` and `stopped` in this order; `terminated` before `disconnect` is answered."""
    async with standing(connect, direct=direct) as (client, thread):
        where = {"source": {"path": TOUR}, "line": AFTER}
        targets = (await client.request("gotoTargets", where, timeout=LIMIT))["targets"]
        seen = len(client.events)
        jump = {"threadId": thread, "targetId": targets[0]["id"]}
        await client.request("goto", jump, timeout=LIMIT)
        await client.wait_event("stopped", lambda body: body["reason"] == "goto", timeout=LIMIT)
        told = [one["event"] for one in client.events[seen:]]
        assert [one for one in told if one in ("continued", "stopped")] == ["continued", "stopped"]
        await client.request("disconnect", timeout=LIMIT)
        assert [one["event"] for one in client.events][-1] == "terminated"
