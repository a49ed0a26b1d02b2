"""`restart` of a job that the session has started: new processes, the same rows and breakpoints."""

from __future__ import annotations

import anyio
import pytest

from dap_mux.client import DapClient, Json
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, User, bodies, line_of, listed
from tests.support.processes.run_command import COUNT, LAUNCH, WAIT, log, resume, start

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    "options",
    [(), pytest.param(("--dial",), marks=pytest.mark.heavy)],
    ids=["ranks-listen", "ranks-call"],
)
async def test_a_stopped_job_is_restarted(user: User, options: tuple[str, ...]) -> None:
    script = user.script(COUNT)
    line = line_of(script, "loss")
    run = await start(user, *options, script, n=2)
    client = await run.client()
    offered = await client.handshake(
        LAUNCH,
        breakpoints={script: [{"line": line, "condition": "number == 1"}]},
        launch=True,
        timeout=LIMIT,
    )
    assert "supportsRestartRequest" not in offered
    assert bodies(client, "capabilities")[-1]["capabilities"]["supportsRestartRequest"] is True
    before = await listed(client, "line", line, line)
    await client.request("restart", timeout=LIMIT)
    after = await anew(client, before, "line", line)
    assert [entry["threadId"] for entry in after] == [entry["threadId"] for entry in before]
    assert bodies(client, "terminated") == []
    assert len(bodies(client, "initialized")) == 1
    # whichever stopped first has the focus; a thread beside it would run on alone
    focused = await client.request("focus", {"rank": 0}, timeout=LIMIT)
    await resume(client, focused["threadId"])
    await client.wait_event("terminated", timeout=LIMIT)
    assert bodies(client, "exited") == [{"exitCode": 0}]
    await client.disconnect()
    assert (await run.ends()).code == 0
    assert all(log(user, rank).count("begin ") == 2 for rank in range(2))


async def test_a_running_job_is_restarted_twice(user: User) -> None:
    run = await start(user, user.script(WAIT), n=2)
    client = await joined(run, launch=True)
    ranks = await listed(client, "state", "running", "running")
    for _ in range(2):
        await client.request("restart", timeout=LIMIT)
        ranks = await anew(client, ranks, "state", "running")
    (user.folder / "go").touch()
    await client.wait_event("terminated", timeout=LIMIT)
    await client.disconnect()
    assert (await run.ends()).code == 0


async def anew(client: DapClient, before: list[Json], key: str, value: object) -> list[Json]:
    """Ask `list` until every rank has another process than before, and this value."""
    with anyio.fail_after(LIMIT):
        while True:
            now = await listed(client, key, *[value] * len(before))
            if all(new["pid"] != old["pid"] for new, old in zip(now, before, strict=True)):
                return now
