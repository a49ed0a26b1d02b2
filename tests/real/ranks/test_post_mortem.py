"""An uncaught exception holds its rank: what a debugger sees of it, and how the rank ends."""

# ruff: noqa: ASYNC240  (small files, and nothing else waits for this event loop)

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dap_mux.client import DapClient
from tests.real.ranks.agents import (
    PROGRAMS,
    START_UP,
    Agent,
    Start,
    attach,
    attach_again,
    processes,
    run_on,
    stopped_stack,
)
from tests.real.ranks.programs import says

pytestmark = [pytest.mark.real, pytest.mark.heavy]

FAILS = """\
import json

def inner(depth):
    secret = depth + 40
    if depth:
        return inner(depth - 1)
    return json.loads('{nope')

inner(2)
"""


@pytest.fixture
def failing(script: Path) -> Path:
    script.write_text(FAILS)
    return script


async def stopped(client: DapClient) -> dict[str, Any]:
    stop: dict[str, Any] = await client.wait_event("stopped", timeout=START_UP)
    return stop


async def local(client: DapClient, thread: int, name: str) -> str:
    """A variable of the top frame, as the Variables view shows it."""
    trace = await client.request("stackTrace", {"threadId": thread}, timeout=START_UP)
    frame = trace["stackFrames"][0]["id"]
    scopes = (await client.request("scopes", {"frameId": frame}, timeout=START_UP))["scopes"]
    reference = {"variablesReference": scopes[0]["variablesReference"]}
    found = (await client.request("variables", reference, timeout=START_UP))["variables"]
    return str(next(each["value"] for each in found if each["name"] == name))


async def fails(client: DapClient, agent: Agent, thread: int) -> str:
    """Continue to the end; what the rank has said then."""
    await run_on(client, agent, thread, 1)
    stops = [event for event in client.events if event["event"] == "stopped"]
    assert len(stops) == 1, stops
    return agent.text()


MINE = [("inner", "script.py", 7), ("inner", "script.py", 6), ("inner", "script.py", 6)]


@PROGRAMS
async def test_no_filter_is_set_and_the_exception_is_shown_with_its_locals(
    start: Start, failing: Path, program: list[str]
) -> None:
    agent = await start(*program)
    client = await attach(agent)
    reason, frames, thread = await stopped_stack(client)
    assert reason == "exception"
    assert frames == [*MINE, ("<module>", "script.py", 9)]
    assert await local(client, thread, "secret") == "40"
    info = await client.request("exceptionInfo", {"threadId": thread}, timeout=START_UP)
    assert info["exceptionId"].startswith("JSONDecodeError")
    assert info["breakMode"] == "unhandled"
    said = await fails(client, agent, thread)
    assert "JSONDecodeError: Expecting property name" in said
    assert "held" not in said


async def test_all_code_stops_where_it_was_raised(start: Start, failing: Path) -> None:
    agent = await start("script.py")
    client = await attach(agent, just_my_code=False)
    _, frames, thread = await stopped_stack(client)
    assert frames[0][:2] == ("raw_decode", "decoder.py")
    await fails(client, agent, thread)


async def test_a_stop_by_the_debuggers_own_filter_is_not_repeated(
    start: Start, failing: Path
) -> None:
    agent = await start("script.py")
    client = await attach(agent, exception_filters=["uncaught"])
    await fails(client, agent, (await stopped(client))["threadId"])


async def test_nobody_is_there_and_it_waits_for_who_comes(start: Start, failing: Path) -> None:
    agent = await start("--no-wait", "script.py", RANK="2", WORLD_SIZE="4")
    await says(agent, "for a debugger to look")
    port = agent.record["port"]
    assert (
        "dap-mux: rank 2 of 4 failed: JSONDecodeError: Expecting property name enclosed in "
        "double quotes: line 1 column 2 (char 1) (decoder.py, line " in agent.text()
    )
    assert f"held at most 300 s for a debugger to look (127.0.0.1:{port};" in agent.text()
    client = await attach(agent)
    stop = await stopped(client)
    assert stop["reason"] == "exception"
    assert await local(client, stop["threadId"], "secret") == "40"
    await fails(client, agent, stop["threadId"])


@pytest.mark.parametrize("filters", [[], ["uncaught"]], ids=["no filter", "uncaught"])
async def test_a_debugger_that_goes_without_a_word_may_come_back(
    start: Start, failing: Path, filters: list[str]
) -> None:
    """As it does when a tunnel breaks; the rank would be lost just when it is looked at."""
    agent = await start("script.py")
    client = await attach(agent, exception_filters=filters)
    await stopped(client)
    await client.close()
    await says(agent, "held again" if not filters else "it is held")
    client = await attach_again(agent)
    thread = (await stopped(client))["threadId"]
    assert await local(client, thread, "secret") == "40"
    await fails(client, agent, thread)


GOES_TWICE = """\
from importlib import import_module
from types import SimpleNamespace

import_module("debugpy.server.api")
api = import_module("_pydevd_bundle.pydevd_api").PyDevdAPI
states = import_module("_pydevd_bundle.pydevd_constants")
thread = SimpleNamespace(pydev_state=states.STATE_SUSPEND)
api.request_disconnect = lambda self: vars(thread).update(pydev_state=states.STATE_RUN)

from dap_mux.rank import post_mortem as exception_stop

stop = SimpleNamespace(info=thread, abandoned=False)
exception_stop._stops.append(stop)
exception_stop._note_who_is_abandoned()
api().request_disconnect()
api().request_disconnect()
print(stop.abandoned)
"""


def test_the_adapters_disconnect_and_the_end_of_its_connection_are_one_end() -> None:
    """The second came before the thread woke about once in 50, and the rank was not held."""
    ran = subprocess.run(
        [sys.executable, "-c", GOES_TWICE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stdout, ran.stderr) == ("True\n", "")


async def test_continue_and_then_disconnect_ends_it(start: Start, failing: Path) -> None:
    agent = await start("script.py")
    client = await attach(agent, exception_filters=["uncaught"])
    thread = (await stopped(client))["threadId"]
    request = client.request("continue", {"threadId": thread})
    continued = asyncio.ensure_future(request)
    await asyncio.sleep(0)  # it is sent first; its answer may come or not
    await client.disconnect()
    assert await agent.ends() == 1
    assert "held" not in agent.text()
    await asyncio.gather(continued, return_exceptions=True)


async def test_nobody_comes_and_it_ends_in_time(start: Start, failing: Path) -> None:
    agent = await start("--no-wait", "script.py", DAP_MUX_POST_MORTEM="0.2")
    assert await agent.ends() == 1
    assert "had no debugger attached within 0.2 s; exiting" in agent.text()
    assert "Traceback" in agent.text()


async def test_switched_off_nothing_is_held(start: Start, failing: Path) -> None:
    await is_not_held(await start("script.py", DAP_MUX_POST_MORTEM="off"), 1)


async def is_not_held(agent: Agent, code: int) -> None:
    client = await attach(agent)
    assert await agent.ends() == code
    await client.wait_event("terminated", timeout=START_UP)
    assert not [event for event in client.events if event["event"] == "stopped"]
    await client.close()


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("raise SystemExit(7)", 7),
        ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise SystemExit(8)", 8),
        ("raise KeyboardInterrupt", -2),
        ("syntax error", 1),
        ("import threading\nthreading.Thread(target=lambda: 1 / 0).start()", 0),
    ],
    ids=["exit", "exit in a handler", "interrupt", "syntax", "thread"],
)
async def test_what_is_not_held(start: Start, script: Path, source: str, code: int) -> None:
    script.write_text(source + "\n")
    await is_not_held(await start("script.py"), code)


async def test_a_program_with_an_excepthook_of_its_own_is_held_before_that(
    start: Start, script: Path
) -> None:
    """Such as those that abort the whole MPI job."""
    script.write_text("import os, sys\nsys.excepthook = lambda *_: os._exit(9)\nvalue = 5\n1 / 0\n")
    agent = await start("script.py")
    client = await attach(agent)
    thread = (await stopped(client))["threadId"]
    assert await local(client, thread, "value") == "5"
    await run_on(client, agent, thread, 9)


async def test_a_forked_child_is_not_held(start: Start, script: Path) -> None:
    script.write_text(
        "import os\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    1 / 0\n"
        "print('child', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    agent = await start("--no-wait", "script.py")
    assert await agent.ends() == 0
    assert "child 1\n" in agent.text()
    assert "held" not in agent.text()


WORKERS = """\
import multiprocessing
import os
import sys

import dap_mux


def work():
    dap_mux.listen(port=0)
    secret = 41
    raise ValueError("no worker")


def given_up():
    dap_mux.listen(port=0)
    try:
        1 / 0
    except ZeroDivisionError:
        sys.exit(7)


if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    worker = context.Process(target=globals()[sys.argv[2]])
    worker.start()
    worker.join()
    print("worker ended with", worker.exitcode)
"""


@pytest.fixture
async def workers(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Agent]]]:
    """A plain program whose worker is a rank; its own process is none."""
    (tmp_path / "workers.py").write_text(WORKERS)
    folder = tmp_path / "records"
    folder.mkdir()
    async with processes(tmp_path) as begin:

        async def run(*words: str, **environ: str) -> Agent:
            told = {"DAP_MUX_RENDEZVOUS": str(folder), **environ}
            agent = await begin(sys.executable, "workers.py", *words, **told)
            await says(agent, "listens for a debugger")
            agent.record = json.loads(next(folder.glob("*.json")).read_text())
            return agent

        yield run


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="Python deals with it too early")
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
async def test_a_rank_that_multiprocessing_has_started_is_held(
    workers: Callable[..., Awaitable[Agent]], method: str
) -> None:
    agent = await workers(method, "work")
    await says(agent, "failed: ValueError: no worker (workers.py, line 11); it is held")
    client = await attach(agent)
    reason, frames, thread = await stopped_stack(client)
    assert reason == "exception"
    assert frames[0] == ("work", "workers.py", 11)
    assert await local(client, thread, "secret") == "41"
    await run_on(client, agent, thread)
    assert "worker ended with 1\n" in agent.text()


async def test_but_not_where_it_exits_by_itself(
    workers: Callable[..., Awaitable[Agent]],
) -> None:
    agent = await workers("spawn", "given_up")
    assert await agent.ends() == 0
    assert "worker ended with 7\n" in agent.text()
    assert "held" not in agent.text()
