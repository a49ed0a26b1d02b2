"""`--catch-nan` and `--locate`: a rank of a real torch stops before it sends what is not finite."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient, Json
from tests.launchers.launching import STARTS, line, run_torch
from tests.real.driving import joined
from tests.support.processes.commands import Command, User, bodies, listed

pytestmark = pytest.mark.timeout(300)
SCRIPT: Final = Path(__file__).parent / "scripts" / "not_finite.py"
BACKWARD: Final = line(SCRIPT, "loss.backward()")
BUG: Final = line(SCRIPT, "# BUG")


async def start(user: User, option: str, **environ: str) -> tuple[Command, DapClient]:
    """Start two ranks; they wait for a debugger, which this brings."""
    run = await run_torch(user, [option], SCRIPT, ranks=2, **environ)
    return run, await joined(run, name="editor", timeout=STARTS)


def told(client: DapClient) -> str:
    """What the session has printed."""
    return "".join(body["output"] for body in bodies(client, "output"))


async def why_stopped(client: DapClient, row: Json) -> Json:
    """What a client shows of the exception that a rank has stopped at."""
    return await client.request("exceptionInfo", {"threadId": row["threadId"]})


async def test_the_rank_stops_alone_before_it_sends(user: User) -> None:
    run, client = await start(user, "--catch-nan")
    rows = await listed(client, "state", "running", "stopped", within=STARTS)
    assert [rows[1]["reason"], rows[1]["line"]] == ["exception", BACKWARD]
    said = await why_stopped(client, rows[1])
    assert (said["exceptionId"], said["breakMode"]) == ("Not finite", "always")
    assert "of a gradient bucket (float32 [53]) before all_reduce" in said["description"]
    assert "rank 1: not finite: " in told(client)
    await client.request("next", {"threadId": rows[1]["threadId"], "singleThread": True})
    rows = await listed(client, "line", None, BACKWARD + 1, within=STARTS)
    await client.request("continue", {"threadId": rows[1]["threadId"]})
    # Now the weights of both are spoilt, and each rank stops once.
    rows = await listed(client, "line", BACKWARD, None, within=STARTS)
    await client.request("continue", {"threadId": rows[0]["threadId"]})
    assert (await run.ends(within=STARTS)).code == 0


async def test_the_line_is_located_in_all_ranks_at_once(user: User) -> None:
    run, client = await start(user, "--locate", SPOILT="all")
    rows = await listed(client, "state", "stopped", "stopped", within=STARTS)
    for row in rows:
        said = (await why_stopped(client, row))["description"]
        assert f"made by log at {SCRIPT}:{BUG} (step 2): 1 of 16 elements (1 inf)" in said
        assert "; its inputs: float32 [4, 4], 0 to " in said
    assert "not finite in all 2 ranks at once, in step 2: look at" in told(client)
    for row in rows:
        await client.request("continue", {"threadId": row["threadId"]})
    assert (await run.ends(within=STARTS)).code == 0
