"""The tools of a coding agent on four real ranks, by the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Final

import pytest

from dap_mux.client import DapClient
from tests.real.agents.agent import TRAIN, Agent, in_memory, over_stdio
from tests.real.driving import observing
from tests.support.clients.jobs import serving
from tests.support.processes.commands import LIMIT, User, line_of, listed
from tests.support.processes.proc_net import free_ports
from tests.support.processes.run_command import start

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
TOOLS: Final = (
    "status start why stacks compare values source output breakpoints go wait_for_stop lease"
)
READ_ONLY: Final = "status why stacks compare values source output wait_for_stop"


async def states(client: DapClient) -> list[str]:
    return [row["state"] for row in (await client.request("list"))["ranks"]]


@pytest.mark.quick
async def test_a_wrong_value_is_found(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    path = user.script(TRAIN)
    await serving(user, path, n=4)
    async with in_memory(user, monkeypatch) as agent:
        answer = await agent.does("status")
        assert answer["ranks"] == [{"ranks": "0-3", "state": "waiting"}]
        assert answer["agent"] == "looks"
        answer = await agent.does("values")
        assert (agent.failed, answer["code"]) == (True, "no-debugger")

        line = line_of(path, "return")
        place = {"place": "train.py", "near": "return loss", "condition": "n == 3"}
        answer = await agent.does("breakpoints", action="set", **place)
        assert answer["breakpoint"] == f"1: {path}:{line} in step, if n == 3"
        first = await agent.does(
            "go", action="continue", request_id="1", watch=["loss", "n"], wait=25
        )
        stop = await agent.until("wait_for_stop", "others", [])
        [one] = stop["stopped"]
        assert (one["ranks"], one["place"], stop["others"]) == ("0-3", f"train.py:{line}", [])
        loss, n = stop["watches"]
        assert loss["values"] == [{"ranks": "0-1,3", "value": "3"}, {"ranks": "2", "value": "13"}]
        assert (loss["differs"], n["differs"]) == (True, False)
        assert (loss["outliers"], n["outliers"]) == ("2", "")
        again = await agent.does("go", action="continue", request_id="1")
        assert again == first, "a call that is repeated does nothing twice"

        await look(agent, line)
        await move(agent)
        assert (await agent.does("lease", action="release"))["released"] is True


async def look(agent: Agent, line: int) -> None:
    """At four ranks that are stopped at this line, in the third call of `step`."""
    compared = await agent.does("compare", expression="loss")
    assert compared["outliers"] == "2"
    shown = await agent.does("values", names=["loss", "big"])
    assert [len(one["results"]) for one in shown["values"]] == [2, 1]
    [piece] = (await agent.does("values", names=["big"], offset=9_999_999, length=9))["values"]
    [result] = piece["results"]
    assert (result["ranks"], result["value"], result["of"]) == ("0-3", "xx'", 10_000_002)
    [piece] = (await agent.does("values", names=["big"], offset=5000, length=2000))["values"]
    assert piece["results"][0]["value"] == "x" * 2000
    [names] = (await agent.does("values"))["names"]
    assert {"loss: int", "n: int"} <= {*names["names"]}
    told = await agent.does("stacks")
    [stack] = told["stacks"]
    assert (stack["ranks"], stack["stopped"]) == ("0-3", "0-3")
    assert stack["stack"][0] == f"train.py:{line} step"
    assert [each.rpartition("/")[2] for each in told["files"]] == ["train.py"]
    source = await agent.does("source", around=1)
    assert source["source"][1] == f"{line}:     return loss  # return"
    printed = await agent.does("output", text="step 3")
    assert {each["text"].partition("] ")[2] for each in printed["lines"]} == {"step 3"}


async def move(agent: Agent) -> None:
    """Step all, let all run on, and pause one."""
    moved = await agent.does("go", action="next", request_id="2", wait=25)
    stop = await agent.until("wait_for_stop", "others", [])
    assert any(one["watches"][0]["changed"] for one in (moved, stop) if "watches" in one)
    assert [one["ranks"] for one in stop["stopped"]] == ["0-3"]
    answer = await agent.does("go", action="continue", request_id="3", wait=0)
    assert answer["state"] == "still running"
    await agent.until("wait_for_stop", "state", "still running", wait=0.2)
    stop = await agent.does("go", action="pause", ranks="1", request_id="4", wait=25)
    assert [one["ranks"] for one in stop["stopped"]] == ["1"]
    answer = await agent.does("wait_for_stop", wait=0.2)
    assert [one["ranks"] for one in answer["others"]] == ["0,2-3"]


async def test_a_breakpoint_set_again_replaces_the_first(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = user.script(TRAIN)
    run = await serving(user, path, n=2)
    human = await run.client("human")
    await human.handshake({"justMyCode": True}, breakpoints={path: [8]}, client_id="vscode")
    await listed(human, "state", "stopped", "stopped")
    line = line_of(path, "return")
    async with in_memory(user, monkeypatch) as agent:

        async def sets(place: str, condition: str, **more: str) -> str:
            asked = {"place": place, "condition": condition, **more}
            answer = await agent.does("breakpoints", action="set", **asked)
            return str(answer["breakpoint"])

        async def conditions() -> set[str]:
            found = (await agent.does("breakpoints"))["breakpoints"]
            return {each["condition"] for each in found if each["condition"]}

        await sets(f"train.py:{line}", "n == 10**6")
        assert await sets("train.py", "n == 50", near="return loss") == (
            f"2: {path}:{line} in step, if n == 50"
        )
        assert await conditions() == {"n == 50"}
        await sets(f"train.py:{line}", "n == 60", ranks="1")
        assert await conditions() == {"n == 50", "job.ranks(1): n == 60"}
        # Line 5 is empty: debugpy moves both to the next line with code.
        await sets("train.py:5", "n == 7")
        await sets("train.py:5", "n == 8")
        assert await conditions() == {"n == 50", "job.ranks(1): n == 60", "n == 8"}
        await human.request("setBreakpoints", {"source": {"path": path}, "breakpoints": []})
        await agent.does("go", action="continue", request_id="1", wait=25)
        stop = await agent.until("wait_for_stop", "others", [])
        [one] = stop["stopped"]
        assert (one["ranks"], one["place"]) == ("0-1", f"train.py:{line}")
        [shown] = (await agent.does("values", names=["n"]))["values"]
        assert [each["value"] for each in shown["results"]] == ["50"]


async def test_looking_pauses_and_starts_nobody(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await start(user, user.script(TRAIN), n=2)
    watch = await observing(run)
    async with in_memory(user, monkeypatch) as agent:
        tools = (await agent.client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS.split()
        reading = [t.name for t in tools if t.annotations and t.annotations.read_only_hint]
        assert reading == READ_ONLY.split()
        assert "never\ninstructions" in (agent.client.instructions or "")
        for tool in ("status", "why", "stacks", "output"):
            await agent.does(tool)
        assert await states(watch) == ["waiting"] * 2
        stop = await agent.does("lease", action="take")
        assert stop["stopped"][0]["place"] == "train.py:1"
        await agent.does("go", action="continue", request_id="1", wait=0)
        await agent.until("wait_for_stop", "state", "still running", wait=0.2)
        for tool in ("status", "why", "stacks", "output"):
            answer = await agent.does(tool)
            assert not agent.failed, answer
        await agent.does("compare", expression="rank")
        assert await states(watch) == ["running"] * 2


@pytest.mark.slow
async def test_start_attaches_to_ranks_that_listen(user: User) -> None:
    port = str(free_ports(1))
    words = ["-m", "debugpy", "--listen", f"127.0.0.1:{port}", user.script(TRAIN)]
    rank = await asyncio.create_subprocess_exec(
        sys.executable, *words, env={**user.environ, "RANK": "0"}, stdout=asyncio.subprocess.DEVNULL
    )
    user.others.append(rank)
    async with over_stdio(user) as agent:
        attach = {"command": [f"127.0.0.1:{port}"], "attach": True}
        await agent.does("start", **attach, request_id="1")
        await agent.until("wait_for_stop", "state", "still running", wait=1)
        await agent.does("breakpoints", action="set", place=f"{user.folder}/train.py:7")
        await agent.does("go", action="continue", ranks="all", request_id="2", wait=25)
        stop = await agent.until("wait_for_stop", "state", "stopped")
        assert stop["stopped"][0]["place"] == "train.py:7"
        await agent.does("start", command=["127.0.0.1:1", "x:y"], attach=True, request_id="3")
        assert agent.failed


async def test_over_stdio_a_job_starts_and_its_client_leaves_it_running(user: User) -> None:
    path = user.script(TRAIN)
    async with over_stdio(user) as agent:
        arguments = {"command": [path], "ranks": 2, "request_id": "1"}
        started = await agent.does("start", **arguments)
        assert started["stopped"][0]["ranks"] == "0-1", started
        again = await agent.does("start", **arguments)
        assert again == started
        await agent.does("breakpoints", action="set", place="step")
        stop = await agent.does("go", action="continue", request_id="2", wait=25)
        assert stop["state"] == "stopped"
        address = started["session"].rpartition(":")
    watch = await DapClient.connect(address[0], int(address[2]))
    try:
        [file] = user.sessions.glob("*.json")
        await watch.request("initialize", {"adapterID": "dap-mux"})
        token = json.loads(file.read_text("utf-8"))["token"]
        await watch.request("attach", {"role": "observer", "token": token})
        await listed(watch, "state", "waiting", "waiting", within=LIMIT)
    finally:
        await watch.close()
