"""Processes under the in-rank agent, for the tests of it."""

# ruff: noqa: ASYNC240  (small files, and nothing else waits for this event loop)

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from dap_mux.client import DapClient, RequestFailed
from tests.support.processes import commands
from tests.support.processes.proc_net import free_ports

START_UP = 30  # seconds; a limit, not a wait


@dataclass
class Agent:
    """A process under the agent, its log and, once it is ready, its record."""

    process: asyncio.subprocess.Process
    log: Path
    record: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        return self.log.read_text()

    async def ends(self) -> int:
        return await asyncio.wait_for(self.process.wait(), START_UP)


Start = Callable[..., Awaitable[Agent]]


@asynccontextmanager
async def processes(folder: Path) -> AsyncIterator[Start]:
    """`await begin(*words, NAME="value")`: a process in this folder, which ends with the block."""
    agents: list[Agent] = []

    async def begin(*words: str, **environ: str) -> Agent:
        log = folder / f"log-{len(agents)}"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *words,
                cwd=folder, env={**clean_environment(), **environ},
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,  # so that what it has started ends with it
            )  # fmt: skip
        agents.append(Agent(process, log))
        return agents[-1]

    yield begin
    for agent in agents:
        if agent.process.returncode is None:
            os.killpg(agent.process.pid, signal.SIGKILL)
            await agent.process.wait()


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """`await start("--no-wait", "script.py")`: returns once the agent listens."""
    numbers = itertools.count()
    async with processes(tmp_path) as begin:

        async def start_agent(
            *words: str, ready: bool = True, python: str = sys.executable, **environ: str
        ) -> Agent:
            ready_file = tmp_path / f"ready-{next(numbers)}.json"
            options = ["--ready-file", str(ready_file)]
            if not {"--port", "--base-port"}.intersection(words):
                options += ["--port", "0"]
            agent = await begin(python, "-m", "dap_mux.rank", *options, *words, **environ)
            if ready:
                agent.record = await record_in(ready_file, agent)
            return agent

        yield start_agent


def clean_environment() -> dict[str, str]:
    """Our own, without what any launcher has put there."""
    launchers = ("OMPI_", "PMI", "SLURM_", "PAI_", "JOB_")
    environ = commands.clean_environment()
    return {name: text for name, text in environ.items() if not name.startswith(launchers)}


async def record_in(path: Path, agent: Agent) -> dict[str, Any]:
    with anyio.fail_after(START_UP):
        while not path.exists():
            assert agent.process.returncode is None, agent.text()
            await anyio.sleep(0.01)
    record: dict[str, Any] = json.loads(path.read_text())
    return record


async def attach(agent: Agent, *, just_my_code: bool = True, **handshake: Any) -> DapClient:
    client = await DapClient.connect(agent.record["host"], agent.record["port"])
    try:
        await client.handshake({"justMyCode": just_my_code}, timeout=START_UP, **handshake)
    except BaseException:
        await client.close()
        raise
    return client


async def stopped_stack(client: DapClient) -> tuple[str, list[tuple[str, str, int]], int]:
    """Reason, frames as (name, file, line) and thread of the next stop."""
    stop = await client.wait_event("stopped", timeout=START_UP)
    trace = await client.request("stackTrace", {"threadId": stop["threadId"]}, timeout=START_UP)
    frames = [
        (frame["name"], Path(frame["source"]["path"]).name, frame["line"])
        for frame in trace["stackFrames"]
    ]
    return stop["reason"], frames, stop["threadId"]


async def run_on(client: DapClient, agent: Agent, thread: int, code: int = 0) -> None:
    """Let the program run to its end, the exit code its own."""
    await client.request("continue", {"threadId": thread}, timeout=START_UP)
    assert await agent.ends() == code, agent.text()
    await client.close()


async def attach_again(agent: Agent) -> DapClient:
    """Attach once the adapter has let go of the debugger before us: the rank runs on earlier."""
    with anyio.fail_after(START_UP):
        while True:
            try:
                return await attach(agent)
            except RequestFailed as refused:
                assert "already being debugged" in str(refused), refused
            await anyio.sleep(0.3)


SCRIPT = """\
def double(x):
    y = 2 * x
    return y

total = double(4)
print("total", total)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


PROGRAMS = pytest.mark.parametrize("program", [["script.py"], ["-m", "script"]], ids=["file", "-m"])


@contextmanager
def neighbouring_ports(count: int) -> Iterator[list[socket.socket]]:
    """`count` sockets bound to ports in a row, not listening yet."""
    base = free_ports(count)  # of those that are ours where tests run side by side
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for offset, one in enumerate(sockets):
            one.bind(("127.0.0.1", base + offset))
        yield sockets
