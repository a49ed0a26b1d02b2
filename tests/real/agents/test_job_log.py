"""The log of a job that an agent has started: its last part, also once the agent has gone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from dap_mux.frontends.mcp.job_log import KEPT
from tests.real.agents.agent import over_stdio
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
LOUD: Final = """\
import time
number = 0
while True:
    number += 1
    print("line", number, "x" * 4000, flush=True)
    time.sleep(0.001)
"""


def numbers(log: Path) -> list[int]:
    """Return those of the lines that the log has now."""
    text = log.read_text("utf-8", "replace")
    assert len(text) <= 2 * KEPT
    return [int(number) for number in re.findall(r"line (\d+) x", text)]


async def test_it_is_bounded_and_goes_on_without_the_agent(user: User) -> None:
    async with over_stdio(user, TMPDIR=str(user.folder)) as agent:
        arguments = {"command": [user.script(LOUD)], "ranks": 1, "request_id": "1"}
        log = Path((await agent.does("start", **arguments))["log"])
        await until(
            lambda: "one session for 1 rank" in log.read_text("utf-8"),
            within=LIMIT,
            what="a greeting",
        )
        await agent.does("go", action="continue", request_id="2", wait=0)
        await until(
            lambda: numbers(log)[:1] > [1], within=2 * LIMIT, what="the first part has gone"
        )
    last = numbers(log)[-1]

    def all_later() -> bool:
        """None is missing between; a look at the file while its first part goes sees it twice."""
        found = numbers(log)
        return found[0] > last and found == [*range(found[0], found[-1] + 1)]

    await until(all_later, within=2 * LIMIT, what="all that was kept has gone")


async def test_why_a_job_does_not_start_is_said(user: User) -> None:
    async with over_stdio(user, TMPDIR=str(user.folder)) as agent:
        answer = await agent.does("start", command=["/nowhere/launcher"], request_id="1")
        assert (agent.failed, answer["code"]) == (True, "not-started")
        assert "/nowhere/launcher" in answer["hint"]
