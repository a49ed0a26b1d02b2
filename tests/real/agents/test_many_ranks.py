"""Answers stay below 8 KB with 64 and 512 ranks, all of which differ."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

import pytest

from tests.real.agents.agent import in_memory
from tests.real.driving import observing
from tests.support.processes.commands import LIMIT, User

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


@pytest.mark.parametrize("count", [64, pytest.param(512, marks=pytest.mark.heavy)])
async def test_answers_are_bounded(user: User, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    ranks = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.bench.fake_ranks", str(count), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert ranks.stdout is not None
        ports = json.loads(await asyncio.wait_for(ranks.stdout.readline(), LIMIT))
        run = await user.start("attach", *(f"127.0.0.1:{port}" for port in ports))
        await run.session()
        async with in_memory(user, monkeypatch) as agent:
            await agent.does("lease", action="take")
            watch = await observing(run)
            await watch.request("evaluate", {"expression": "stop"})
            stop = await agent.until("wait_for_stop", "state", "stopped", wait=2)
            assert [one["ranks"] for one in stop["stopped"]] == [f"0-{count - 1}"]
            values = await agent.does("values", names=["own"])
            [value] = values["values"]
            assert len(value["results"]) < count
            assert f"of {count} in `results`" in values["next"]
            fewer = await agent.does("values", names=["own"], ranks="3")
            assert [one["ranks"] for one in fewer["values"][0]["results"]] == ["3"]
            asked: dict[str, dict[str, Any]] = {
                "status": {}, "why": {}, "stacks": {}, "compare": {"expression": "own"},
                "values": {"names": ["own"] * 20}, "wait_for_stop": {}, "output": {},
                "go": {"action": "next", "request_id": "1", "watch": ["own"], "wait": 5},
            }  # fmt: skip
            for tool, arguments in asked.items():
                begin, largest = time.perf_counter(), agent.largest
                answer = await agent.does(tool, **arguments)
                assert not agent.failed, answer
                took = (time.perf_counter() - begin) * 1000
                print(f"{count} ranks: {tool} {took:.0f} ms; largest {agent.largest} ({largest})")
    finally:
        ranks.kill()
        await ranks.wait()
