"""An agent beside a person: who drives, and what happens when the agent is killed."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Final

import pytest

from dap_mux.client import DapClient
from tests.real.agents.agent import TRAIN, in_memory
from tests.support.processes.commands import LIMIT, Command, User, listed
from tests.support.processes.run_command import start

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
RUNS_ON_S: Final = 3.0


async def editor(run: Command, path: str) -> DapClient:
    """Somebody in VS Code, whose breakpoint all ranks stop at."""
    client = await run.client("human")
    await client.handshake({"justMyCode": True}, breakpoints={path: [7]}, client_id="vscode")
    await listed(client, "state", *["stopped"] * 2)
    return client


async def test_a_person_takes_over_and_the_agent_is_told(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = user.script(TRAIN)
    run = await start(user, path, n=2)
    human = await editor(run, path)
    async with in_memory(user, monkeypatch) as agent:
        await agent.does("go", action="next", request_id="1", wait=25)
        await listed(human, "line", 8, 8)
        said = await human.wait_event("output", lambda body: "drives" in body["output"])
        assert said["output"].startswith("dap-mux: dap-mux mcp drives")
        held = (await agent.does("lease"))["lease"]
        assert (held["holder"], held["act"]) == ("dap-mux mcp", "stepping 0-1")
        await human.request("next", {"threadId": 1})
        answer = await agent.does("status")
        assert answer["notices"][-1] == "vscode takes over from dap-mux mcp"
        answer = await agent.does("go", action="continue", request_id="2")
        assert (agent.failed, answer["code"]) == (True, "lease-lost")
        await listed(human, "state", "stopped", "stopped")
        assert (await agent.does("lease", action="take"))["lease"]["lostTo"] == ""
        await agent.does("go", action="continue", request_id="3", wait=25)
        await listed(human, "line", 7, 7)


@pytest.mark.alone
@pytest.mark.heavy
async def test_what_a_killed_agent_held_runs_on_though_a_person_is_attached(user: User) -> None:
    run = await start(user, user.script(TRAIN), n=2)
    client = await run.client("human")
    await client.handshake({"justMyCode": True}, client_id="vscode")
    await listed(client, "state", *["running"] * 2)
    agent = await user.start("mcp", piped=True)
    asked = {"protocolVersion": "2025-06-18", "capabilities": {}}
    await says(agent, "initialize", {**asked, "clientInfo": {"name": "x", "version": "1"}})
    await calls(agent, "breakpoints", action="set", place="train.py:7")
    stop = await calls(agent, "go", action="pause", request_id="1", wait=25)
    assert stop["state"] == "stopped"
    stop = await calls(agent, "go", action="continue", request_id="2", wait=25)
    assert stop["stopped"][0]["place"] == "train.py:7"
    begin = time.monotonic()
    agent.process.kill()
    await listed(client, "state", *["running"] * 2)
    assert time.monotonic() - begin < RUNS_ON_S


async def calls(agent: Command, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool of `dap-mux mcp` by hand: the SDK's client shows no process to kill."""
    result = await says(agent, "tools/call", {"name": tool, "arguments": arguments})
    answer: dict[str, Any] = result["structuredContent"]
    return answer


async def says(agent: Command, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Send a request over its pipe; return the result."""
    stdin, stdout = agent.process.stdin, agent.process.stdout
    assert stdin is not None
    assert stdout is not None
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    stdin.write(json.dumps(request).encode() + b"\n")
    line = await asyncio.wait_for(stdout.readline(), LIMIT)
    result: dict[str, Any] = json.loads(line)["result"]
    return result
