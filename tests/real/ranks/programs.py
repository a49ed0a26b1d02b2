"""Plain Python programs that become ranks by themselves, for the tests of that."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from dap_mux.client import DapClient
from tests.real.ranks.agents import START_UP, Agent, clean_environment

Python = Callable[..., Awaitable[Agent]]


@pytest.fixture
async def python(tmp_path: Path) -> AsyncIterator[Python]:
    """`await python(source, RANK="1", ...)`: plain Python, told of a folder for its records."""
    agents: list[Agent] = []
    numbers = itertools.count()

    async def start(source: str, **environ: str) -> Agent:
        number = next(numbers)
        script, log = tmp_path / "program.py", tmp_path / f"log-{number}"
        if not script.exists() or script.read_text() != source:  # a rank may just be reading it
            script.write_text(source)
        folder = {"DAP_MUX_RENDEZVOUS": str(tmp_path), "DAP_MUX_POST_MORTEM": "0"}
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(script),
                cwd=tmp_path, env={**clean_environment(), **folder, **environ},
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip
        agents.append(Agent(process, log))
        return agents[-1]

    yield start
    for agent in agents:
        if agent.process.returncode is None:
            agent.process.kill()
            await agent.process.wait()


async def listening(agent: Agent) -> Agent:
    """Wait for its record in the rendezvous folder."""
    pattern = f"*-{agent.process.pid}.json"
    with anyio.fail_after(START_UP):
        while not (found := list(agent.log.parent.glob(pattern))):
            assert agent.process.returncode is None, agent.text()
            await anyio.sleep(0.01)
    agent.record = json.loads(found[0].read_text())
    return agent


async def top_frame(client: DapClient) -> tuple[str, int, int]:
    """Function, line and thread of the next stop."""
    stop = await client.wait_event("stopped", timeout=START_UP)
    trace = await client.request("stackTrace", {"threadId": stop["threadId"]}, timeout=START_UP)
    frame = trace["stackFrames"][0]
    return frame["name"], frame["line"], stop["threadId"]


async def says(agent: Agent, words: str) -> None:
    with anyio.fail_after(START_UP):
        while words not in agent.text():
            assert agent.process.returncode is None, agent.text()
            await anyio.sleep(0.01)
