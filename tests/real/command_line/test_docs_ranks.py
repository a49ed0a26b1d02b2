"""docs/ranks.md is true, and the command of docs/openpai.md: they run, the job as one session."""

# ruff: noqa: ASYNC240  (small files, and nothing else waits for this event loop)

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from dap_mux.client import DapClient
from tests.real.driving import driving
from tests.real.ranks.agents import START_UP, Agent, attach, processes
from tests.support.processes.proc_net import free_ports

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/ranks.md").read_text("utf-8")
OPENPAI = (ROOT / "docs/openpai.md").read_text("utf-8")
JOB = (ROOT / "examples/openpai/job.yaml").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(PAGE)
COMMANDS = [
    line.partition("#")[0].strip()
    for language, block in [*BLOCKS, *BLOCK.findall(OPENPAI)]
    if language == "sh"
    for line in block.splitlines()
    if "python -m dap_mux.rank" in line
]
PROGRAMS = [block for language, block in BLOCKS if language == "python"]
ROLE = "train"

Shell = Callable[..., Awaitable[Agent]]


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    """`await shell(command, NAME=value)`: a line as it is typed, in a folder with its programs."""
    (tmp_path / "package").mkdir()
    for name in ("train.py", "package/train.py"):
        (tmp_path / name).write_text("print('trained')\n")
    shutil.copy(ROOT / "examples/data_parallel.py", tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    folder = {"DAP_MUX_RENDEZVOUS": str(tmp_path), "PATH": path}
    async with processes(tmp_path) as begin:

        async def start(command: str, **environ: str) -> Agent:
            return await begin("sh", "-ec", command, **{**folder, **environ})

        yield start


async def records(folder: Path, *agents: Agent) -> None:
    """Wait until each of them has written its record, by rank."""
    with anyio.fail_after(START_UP):
        while len(found := list(folder.glob("*.json"))) < len(agents):
            assert all(agent.process.returncode in (None, 0) for agent in agents), [
                agent.text() for agent in agents
            ]
            await anyio.sleep(0.01)
    entries = sorted((json.loads(each.read_text()) for each in found), key=lambda e: e["rank"] or 0)
    for agent, entry in zip(agents, entries, strict=True):
        agent.record = entry


def test_the_launch_configuration_of_the_job_joins_with_the_mapping_of_the_page() -> None:
    (stored,) = json.loads((ROOT / "examples/openpai/launch.json").read_text("utf-8"))[
        "configurations"
    ]
    (shown,) = [
        json.loads(block) for language, block in BLOCK.findall(OPENPAI) if language == "json"
    ]
    stock = {"type": "debugpy", "connect": {"host": "localhost", "port": 5677}}
    assert {**shown, **stock, "cluster": None} == {**stored, "cluster": None}


def test_the_page_has_commands_and_programs() -> None:
    assert len(COMMANDS) == 8
    assert len(PROGRAMS) == 2


@pytest.mark.parametrize("command", COMMANDS)
async def test_every_command_runs_its_program(shell: Shell, tmp_path: Path, command: str) -> None:
    named = {
        "PAI_CURRENT_TASK_ROLE_NAME": ROLE,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0",
        f"PAI_PORT_LIST_{ROLE}_0_debug": str(free_ports(1)),
    }
    agent = await shell(f"exec {command}" if command[0] == "p" else command, **named)
    await records(tmp_path, agent)
    if "--no-wait" not in command:
        client = await attach(agent)
        assert await agent.ends() == 0, agent.text()
        await client.close()
    assert await agent.ends() == 0, agent.text()
    assert "trained\n" in agent.text() or "step" in agent.text(), agent.text()


@pytest.mark.parametrize(
    ("program", "output"),
    [(PROGRAMS[0], {"step 0", "step 1", "step 2"}), (PROGRAMS[1], {"worker 0", "worker 1"})],
    ids=["one place", "threads"],
)
async def test_every_program_stops_where_it_says(
    shell: Shell, tmp_path: Path, program: str, output: set[str]
) -> None:
    (tmp_path / "program.py").write_text(program)
    agent = await shell("exec python program.py")
    await records(tmp_path, agent)
    client = await attach(agent)
    await client.wait_event("stopped", timeout=START_UP)
    assert not all(words in agent.text() for words in output)
    await run_to_the_end(client)
    assert await agent.ends() == 0, agent.text()
    assert all(words in agent.text() for words in output)  # threads may share a line
    await client.close()


async def run_to_the_end(client: DapClient) -> None:
    """Continue whenever it stands: threads that stop at the same moment are one stop or two.

    One `continue` is for both; a second one while it runs is never answered. Nor is an answer
    waited for: the second stop may be over by itself, already on its way at the `continue`.
    """
    while not told(client, "terminated"):
        await run_on(client)
        await client.wait_for(
            lambda: (
                told(client, "stopped", "continued")[-1]["event"] == "stopped"
                or bool(told(client, "terminated"))
            ),
            timeout=START_UP,
            what="the next stop, or the end",
        )


async def run_on(client: DapClient) -> None:
    """Continue from the last stop, and wait until it runs."""
    thread = told(client, "stopped")[-1]["body"]["threadId"]
    before = len(told(client, "continued", "terminated"))
    client.send("continue", {"threadId": thread})
    await client.wait_for(
        lambda: len(told(client, "continued", "terminated")) > before,
        timeout=START_UP,
        what="that it runs on",
    )


def told(client: DapClient, *names: str) -> list[dict[str, Any]]:
    """The events of these names so far."""
    return [event for event in client.events if event["event"] in names]


def platform(task: int, first: int) -> dict[str, str]:
    """What OpenPAI sets in one task of the job, on a machine whose ports from `first` are free."""
    count = int(re.findall(r"instances: (\d+)", JOB)[0])
    return {
        "PAI_CURRENT_TASK_ROLE_NAME": ROLE,
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": str(task),
        f"PAI_TASK_ROLE_TASK_COUNT_{ROLE}": str(count),
        **{f"PAI_HOST_IP_{ROLE}_{each}": "127.0.0.1" for each in range(count)},
        **{f"PAI_PORT_LIST_{ROLE}_{each}_debug": str(first + each) for each in range(count)},
        **{f"PAI_PORT_LIST_{ROLE}_{each}_sync": str(first + count + each) for each in range(count)},
    }


async def test_the_openpai_job_is_one_session_of_four_ranks(shell: Shell, tmp_path: Path) -> None:
    commands = re.findall(r"^    commands:\n((?: {6}- .*\n)+)", JOB, re.MULTILINE)[0]
    lines = [line.removeprefix("      - ") for line in commands.splitlines()]
    base = free_ports(8)
    agents = [await shell("\n".join(lines), **platform(task, base)) for task in range(4)]
    await records(tmp_path, *agents)
    assert [agent.record["port"] for agent in agents] == [base + task for task in range(4)]
    program = str(tmp_path / "data_parallel.py")
    source = Path(program).read_text().splitlines()
    line = next(n for n, text in enumerate(source, 1) if "loss_and_gradient(batch)" in text)
    breakpoint_ = {"line": line, "condition": "ranks(1, 3): step == 2"}
    async with driving(
        [agent.record["port"] for agent in agents], {program: [breakpoint_]}
    ) as driver:
        states = ["running", "stopped", "running", "stopped"]
        await driver.states(*states, within=START_UP)
        assert await driver.value(3, "step") == "2"
        await driver.look(3)
        await driver.go_on()
        assert [await agent.ends() for agent in agents] == [0] * 4, agents[0].text()
