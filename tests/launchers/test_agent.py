"""A coding agent starts torchrun, and is told before it leaves ranks in a collective."""

from __future__ import annotations

import os
from typing import Final

import pytest

from tests.launchers.launching import RANKS
from tests.launchers.tools import environment
from tests.real.agents.agent import over_stdio
from tests.support.processes.commands import User, line_of
from tests.support.processes.proc_net import free_ports

pytestmark = pytest.mark.timeout(300)
JOB: Final = """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
for step in range(1000):
    loss = torch.ones(1) * rank  # value
    dist.all_reduce(loss)  # collective
dist.destroy_process_group()
"""


async def test_torchrun_starts_and_no_rank_is_left_in_a_collective(user: User) -> None:
    path = user.script(JOB, "job.py")
    env = {
        "PATH": f"{environment('torch')}{os.pathsep}{user.environ['PATH']}",
        "DAP_MUX_BASE_PORT": str(free_ports(2 * RANKS)),
        "OMP_NUM_THREADS": "1",
    }
    value, collective = line_of(path, "value"), line_of(path, "collective")
    async with over_stdio(user, **env) as agent:
        command = ["torchrun", "--standalone", "--nproc-per-node", "4", path]
        await agent.does("start", command=command, request_id="1")
        stop = await agent.until("wait_for_stop", "others", [])
        assert [(one["ranks"], one["place"]) for one in stop["stopped"]] == [("0-3", "job.py:1")]
        await agent.does("breakpoints", action="set", place=f"job.py:{value}")
        await agent.does("go", action="continue", request_id="2", ranks="all", wait=25)
        stop = await agent.until("wait_for_stop", "others", [])
        assert [(one["ranks"], one["place"]) for one in stop["stopped"]] == [
            ("0-3", f"job.py:{value}")
        ]

        refused = await agent.does("go", action="continue", ranks="0", request_id="3")
        assert (refused["code"], refused["options"]) == ("would-wait", ["0-3"])
        assert refused["hint"].startswith("0 would wait in their next collective for 1-3, which")
        # No collective is called at this line: a step leaves nobody alone.
        moved = await agent.does("go", action="next", ranks="0", request_id="4", wait=25)
        assert moved["stopped"][0]["place"] == f"job.py:{collective}", moved
        refused = await agent.does("go", action="next", ranks="0", request_id="5")
        assert refused["hint"].startswith("0 would wait in all_reduce for 1-3, which would stay")
        stop = await agent.does("wait_for_stop", wait=0)
        assert {one["ranks"] for one in stop["stopped"]} == {"0", "1-3"}

        moved = await agent.does(
            "go", action="next", ranks="0", request_id="5", wait=8, anyway=True
        )
        assert moved["state"] == "still running"
        [other] = moved["others"]
        assert other["reason"].startswith("waits in all_reduce "), moved
        assert other["reason"].endswith(" for ranks 1-3")
        moved = await agent.does("go", action="continue", ranks="1-3", request_id="6", wait=25)
        assert not agent.failed, moved
        assert moved["stopped"][0]["place"] == f"job.py:{value}"
