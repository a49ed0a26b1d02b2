"""`dap_mux.listen`, `wait_for_client`, `settrace`: real programs that call them."""

# ruff: noqa: ASYNC240  (small files, and nothing else waits for this event loop)

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.driving import driving
from tests.real.ranks.agents import START_UP, attach, run_on
from tests.real.ranks.programs import Python, listening, says, top_frame
from tests.support.processes.commands import line_of
from tests.support.processes.proc_net import free_ports

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]

THRICE = """\
import os
import threading

import dap_mux

port = int(os.environ["BASE"]) + int(os.environ["RANK"])


def early(x):
    dap_mux.settrace(port=port)
    return x + 1  # first


def in_a_thread():
    dap_mux.settrace(port=port)
    print("in a thread")  # second


total = early(1)
other = threading.Thread(target=in_a_thread)
other.start()
other.join()
dap_mux.settrace()
print("total", total)  # third
"""


async def test_settrace_three_times_in_each_of_four_ranks_is_one_listener_each(
    python: Python, tmp_path: Path
) -> None:
    base = free_ports(4)
    agents = [
        await python(THRICE, RANK=str(rank), WORLD_SIZE="4", BASE=str(base)) for rank in range(4)
    ]
    for agent in agents:
        await listening(agent)
    records = [agent.record for agent in agents]
    assert [(each["rank"], each["port"]) for each in records] == [(r, base + r) for r in range(4)]
    program = str(tmp_path / "program.py")
    async with driving([each["port"] for each in records]) as driver:
        for mark in ("first", "second", "third"):
            await driver.stopped(line_of(program, mark), within=START_UP)
            await driver.go_on()
        assert [await agent.ends() for agent in agents] == [0] * 4
    for rank, agent in enumerate(agents):
        assert agent.text().count("listens") == 1, agent.text()
        assert f"dap-mux: rank {rank} of 4 listens for a debugger on" in agent.text()
        assert agent.text().endswith("in a thread\ntotal 2\n")
    assert len(list(tmp_path.glob("*.json"))) == 4


async def test_many_threads_at_once_open_one_port(python: Python) -> None:
    agent = await python(
        "import dap_mux, threading\n"
        "barrier, found = threading.Barrier(8), []\n"
        "def call():\n"
        "    barrier.wait()\n"
        "    found.append(dap_mux.listen(port=0))\n"
        "threads = [threading.Thread(target=call) for _ in range(8)]\n"
        "[each.start() for each in threads]\n"
        "[each.join() for each in threads]\n"
        "print(len(found), len(set(found)), found[0][1] > 0)\n"
    )
    assert await agent.ends() == 0
    assert agent.text().splitlines()[-1] == "8 1 True"
    assert agent.text().count("listens") == 1


async def test_threads_that_wait_at_once_all_go_on_when_a_debugger_comes(python: Python) -> None:
    agent = await python(
        "import dap_mux, threading\n"
        "dap_mux.listen(port=0)\n"
        "came = []\n"
        "def wait(): came.append(dap_mux.wait_for_client(60))\n"
        "threads = [threading.Thread(target=wait) for _ in range(4)]\n"
        "[each.start() for each in threads]\n"
        "[each.join() for each in threads]\n"
        "print(came)\n"
    )
    client = await attach(await listening(agent))
    assert await agent.ends() == 0
    assert agent.text().splitlines()[-1] == "[True, True, True, True]"
    await client.close()


async def test_another_port_later_is_not_opened(python: Python) -> None:
    agent = await python(
        "import dap_mux\n"
        "first = dap_mux.listen(port=0)\n"
        "assert dap_mux.listen(port=1) == first\n"
        "assert dap_mux.listen() == first\n"
    )
    assert await agent.ends() == 0, agent.text()
    assert "port 1 is not used" in agent.text()


@pytest.mark.quick
@pytest.mark.parametrize("where", ["main", "thread"])
async def test_debug_timeout_ends_the_wait_with_a_message(python: Python, where: str) -> None:
    call = "dap_mux.settrace(port=0); print('never')"
    source = {
        "main": call,
        "thread": f"import threading, time\n"
        f"def work(): {call}\n"
        "threading.Thread(target=work).start()\n"
        "while True: time.sleep(0.01)",
    }[where]
    agent = await python(f"import dap_mux\n{source}\n", DEBUG_TIMEOUT="0.3", RANK="1")
    assert await agent.ends() == 124
    assert (
        "dap-mux: rank 1 had no debugger attached within 0.3 s; exiting "
        "(DEBUG_ON_TIMEOUT=continue would run it without one)\n" in agent.text()
    )
    assert "never" not in agent.text()


async def test_or_the_program_runs_on(python: Python) -> None:
    agent = await python(
        "import dap_mux\n"
        "print(dap_mux.wait_for_client(timeout=0.1))\n"
        "dap_mux.settrace()\n"
        "breakpoint()\n"
        "print('on')\n",
        DEBUG_TIMEOUT="0.3",
        DEBUG_ON_TIMEOUT="continue",
    )
    assert await agent.ends() == 0, agent.text()
    assert "had no debugger attached within 0.1 s; continuing without one\n" in agent.text()
    assert "had no debugger attached within 0.3 s; continuing without one\n" in agent.text()
    assert agent.text().endswith("on\n")


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("DEBUG_TIMEOUT", "soon", "DEBUG_TIMEOUT: 'soon' is not a number of seconds"),
        ("DEBUG_ON_TIMEOUT", "stop", "DEBUG_ON_TIMEOUT: 'stop' is not one of exit, continue"),
        ("DAP_MUX_POST_MORTEM", "x", "DAP_MUX_POST_MORTEM=x: must be a number of seconds, `on` or"),
        ("DEBUG_PORT_NAME", "debug", "DEBUG_PORT_NAME is 'debug', but PAI_PORT_LIST___debug is"),
    ],
)
async def test_variables_that_make_no_sense_are_named(
    python: Python, variable: str, value: str, words: str
) -> None:
    agent = await python("import dap_mux\ndap_mux.wait_for_client()\n", **{variable: value})
    assert await agent.ends() == 1
    assert words in agent.text()


async def test_breakpoint_leads_to_us_by_pythons_own_variable(python: Python) -> None:
    agent = await python(
        "def here():\n    breakpoint()\n    return 1  # stop\n\nhere()\nhere()\n",
        PYTHONBREAKPOINT="dap_mux.settrace",
        DEBUG_PORT_NAME="debug",
        PAI_CURRENT_TASK_ROLE_NAME="train",
        PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX="0",
        PAI_PORT_LIST_train_0_debug=str(free_ports(1)),
    )
    client = await attach(await listening(agent))
    for _ in range(2):
        name, line, thread = await top_frame(client)
        assert (name, line) == ("here", 3)
        await client.request("continue", {"threadId": thread}, timeout=START_UP)
    assert await agent.ends() == 0
    await client.close()


async def test_a_forked_child_runs_on(python: Python) -> None:
    agent = await python(
        "import dap_mux, os\n"
        "dap_mux.listen(port=0)\n"
        "dap_mux.wait_for_client()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    dap_mux.settrace()\n"
        "    os._exit(5)\n"
        "print('child', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    client = await attach(await listening(agent))
    assert await agent.ends() == 0
    assert "child 5\n" in agent.text()
    assert "has no debugger in its forked child" in agent.text()
    await client.close()


BY_ITSELF = """\
import debugpy
{first}
{second}
debugpy.wait_for_client()
print("attached")
dap_mux.settrace()
print("end")  # stop
"""
OURS, THEIRS = "import dap_mux; dap_mux.listen(port=PORT)", "debugpy.listen(('127.0.0.1', PORT))"


@pytest.mark.parametrize("first", ["ours", "theirs"])
async def test_a_program_that_calls_debugpy_itself_shares_the_debugger(
    python: Python, first: str
) -> None:
    port = free_ports(1)
    calls = [each.replace("PORT", str(port)) for each in (OURS, THEIRS)]
    calls = calls if first == "ours" else calls[::-1]
    agent = await python(BY_ITSELF.format(first=calls[0], second=calls[1]))
    await says(agent, "dap-mux: ")
    agent.record = {"host": "127.0.0.1", "port": port}
    client = await attach(agent)
    _, line, thread = await top_frame(client)
    assert line == 7
    await run_on(client, agent, thread)
    assert agent.text().endswith("attached\nend\n")


ALONE = {"DAP_MUX_RENDEZVOUS": "", "DAP_MUX_POST_MORTEM": ""}


async def test_a_program_on_its_own_does_not_wait_for_a_debugger_at_its_end(
    python: Python,
) -> None:
    agent = await python("import dap_mux\ndap_mux.listen(port=0)\n1 / 0\n", **ALONE)
    assert await agent.ends() == 1
    assert "held" not in agent.text()


async def test_but_shows_its_end_to_one_that_is_there(python: Python) -> None:
    port = free_ports(1)
    agent = await python(
        f"import dap_mux\ndap_mux.listen({port})\ndap_mux.wait_for_client()\n1 / 0\n", **ALONE
    )
    await says(agent, "listens")
    agent.record = {"host": "127.0.0.1", "port": port}
    client = await attach(agent)
    _, line, thread = await top_frame(client)
    assert line == 4
    await run_on(client, agent, thread, 1)


async def test_what_a_framework_knows_is_in_the_record(python: Python) -> None:
    agent = await python(
        "from dap_mux.rank.api import Setup, start\n"
        "start(Setup(port=0, traits={'userThreads': ['*Task-Threads*'], 'port': 1}))\n"
    )
    record = (await listening(agent)).record
    assert record["userThreads"] == ["*Task-Threads*"]
    assert record["port"] > 1
    assert await agent.ends() == 0
