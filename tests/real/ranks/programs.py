"""Plain Python programs that become ranks by themselves, for the tests of that."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from dap_mux.client import DapClient
from tests.real.ranks.agents import START_UP, Agent, processes, stopped_stack

Python = Callable[..., Awaitable[Agent]]


@pytest.fixture
async def python(tmp_path: Path) -> AsyncIterator[Python]:
    """`await python(source, RANK="1", ...)`: plain Python, told of a folder for its records."""
    folder = {"DAP_MUX_RENDEZVOUS": str(tmp_path), "DAP_MUX_POST_MORTEM": "0"}
    async with processes(tmp_path) as begin:

        async def start(source: str, **environ: str) -> Agent:
            script = tmp_path / "program.py"
            if not script.exists() or script.read_text() != source:  # a rank may just be reading it
                script.write_text(source)
            return await begin(sys.executable, str(script), **{**folder, **environ})

        yield start


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
    _, [(name, _, line), *_], thread = await stopped_stack(client)
    return name, line, thread


async def says(agent: Agent, words: str) -> None:
    with anyio.fail_after(START_UP):
        while words not in agent.text():
            assert agent.process.returncode is None, agent.text()
            await anyio.sleep(0.01)
