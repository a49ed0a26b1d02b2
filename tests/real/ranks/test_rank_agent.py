"""The in-rank agent against real debugpy: what a debugger sees of the program."""

# ruff: noqa: ASYNC240  (small files, and nothing else waits for this event loop)

from __future__ import annotations

from pathlib import Path

import pytest

from dap_mux.client import DapClient
from dap_mux.pure.remote import found, look_at
from dap_mux.rank.injected import source_of
from tests.real.ranks.agents import PROGRAMS, START_UP, Start, attach, run_on, stopped_stack

pytestmark = [pytest.mark.real, pytest.mark.heavy]
MY_CODE = pytest.mark.parametrize("just_my_code", [True, False], ids=["my code", "all code"])


@PROGRAMS
@MY_CODE
async def test_a_stop_shows_the_users_frames_alone(
    start: Start, script: Path, program: list[str], just_my_code: bool
) -> None:
    agent = await start(*program)
    client = await attach(agent, just_my_code=just_my_code, breakpoints={str(script): [2]})
    reason, frames, thread = await stopped_stack(client)
    assert reason == "breakpoint"
    assert frames == [("double", "script.py", 2), ("<module>", "script.py", 5)]
    threads = (await client.request("threads"))["threads"]
    assert [one["name"] for one in threads] == ["MainThread"]
    await run_on(client, agent, thread)


@PROGRAMS
@MY_CODE
@pytest.mark.parametrize("step", ["next", "stepIn", "stepOut"])
async def test_a_step_off_the_last_line_ends_the_program(
    start: Start, script: Path, program: list[str], just_my_code: bool, step: str
) -> None:
    script.write_text("x = 1\ny = 2\n")
    agent = await start(*program)
    client = await attach(agent, just_my_code=just_my_code, breakpoints={str(script): [2]})
    _, frames, thread = await stopped_stack(client)
    assert frames == [("<module>", "script.py", 2)]
    await client.request(step, {"threadId": thread})
    await client.wait_event("terminated", timeout=START_UP)
    stops = [event for event in client.events if event["event"] == "stopped"]
    assert len(stops) == 1, stops
    assert await agent.ends() == 0
    await client.close()


@PROGRAMS
@MY_CODE
async def test_an_uncaught_exception_stops_where_it_was_raised(
    start: Start, script: Path, program: list[str], just_my_code: bool
) -> None:
    script.write_text("def fail():\n    raise ValueError('no')\n\nfail()\n")
    agent = await start(*program)
    client = await attach(agent, just_my_code=just_my_code, exception_filters=["uncaught"])
    reason, frames, thread = await stopped_stack(client)
    assert reason == "exception"
    assert [frame[:2] for frame in frames] == [("fail", "script.py"), ("<module>", "script.py")]
    info = await client.request("exceptionInfo", {"threadId": thread})
    assert info["exceptionId"].startswith("ValueError")
    assert info["breakMode"] == "unhandled"
    await run_on(client, agent, thread, 1)


async def test_a_caught_exception_does_not_stop(start: Start, script: Path) -> None:
    script.write_text("try:\n    1 / 0\nexcept ZeroDivisionError:\n    print('caught')\n")
    agent = await start("script.py")
    client = await attach(agent, exception_filters=["uncaught"])
    await client.wait_event("terminated", timeout=START_UP)
    assert not [event for event in client.events if event["event"] == "stopped"]
    assert await agent.ends() == 0
    await client.close()


@pytest.mark.quick
async def test_breakpoint_stops_in_the_users_frame(start: Start, script: Path) -> None:
    script.write_text("def here():\n    breakpoint()\n    return 1\n\nhere()\n")
    agent = await start("script.py")
    client = await attach(agent)
    _, frames, thread = await stopped_stack(client)
    assert [frame[0] for frame in frames] == ["here", "<module>"]
    await run_on(client, agent, thread)


async def test_a_rank_that_waits_knows_what_it_will_run(start: Start, script: Path) -> None:
    """It is asked as soon as it is attached, and its program may begin later than that."""
    agent = await start("script.py", "argument")
    client = await DapClient.connect(agent.record["host"], agent.record["port"])
    await client.request("initialize", {"adapterID": "test"}, timeout=START_UP)
    attached = client.send("attach", {"justMyCode": True})
    await client.wait_event("initialized", timeout=START_UP)
    expression = look_at(source_of("file_probe"), "/elsewhere/script.py", "")
    question = {"expression": expression, "context": "watch"}
    answer = await client.request("evaluate", question, timeout=START_UP)
    assert [(path, known) for path, _, known in found(answer["result"]).near] == [
        (str(script), True)
    ]
    await client.request("configurationDone", timeout=START_UP)
    assert (await attached)["success"]
    assert await agent.ends() == 0
    await client.close()


async def test_a_debugger_in_time_leaves_no_clock_behind_and_is_sent_to_without_delay(
    start: Start, script: Path
) -> None:
    agent = await start("--timeout", "60", "script.py")
    client = await attach(agent, breakpoints={str(script): [2]})
    _, _, thread = await stopped_stack(client)
    names = [one["name"] for one in (await client.request("threads"))["threads"]]
    assert names == ["MainThread"]
    nodelay = (
        "__import__('pydevd').get_global_debugger().writer.sock"
        ".getsockopt(__import__('socket').IPPROTO_TCP, __import__('socket').TCP_NODELAY) != 0"
    )
    assert (await client.request("evaluate", {"expression": nodelay}))["result"] == "True"
    await run_on(client, agent, thread)
