"""An agent as tests use it: the SDK's own client, in memory, over pipes or over HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from dap_mux.frontends.cli.mcp import CommandLine
from dap_mux.frontends.mcp.answers import LIMIT
from dap_mux.frontends.mcp.server import make_server
from dap_mux.system.config import Config
from tests.support.processes.commands import COMMAND, User

TRAIN: Final = """\
import os, time
rank = int(os.environ["RANK"])
big = "x" * 10_000_000


def step(n):
    loss = 10 * (rank == 2) + n
    print("step", n, flush=True)
    time.sleep(0.02)
    return loss  # return

for n in range(100_000):
    step(n)
"""


class Agent:
    """Calls tools; every answer is held to its bound, and both of its forms to each other."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.failed = False
        self.largest = 0

    async def does(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; return its answer, whether it has failed or not."""
        result = await self.client.call_tool(tool, arguments)
        [content] = result.content
        assert content.type == "text"
        assert json.loads(content.text) == result.structured_content
        size = len(content.text.encode())
        assert size <= LIMIT
        assert content.text.isprintable()
        self.failed = bool(result.is_error)
        self.largest = max(self.largest, size)
        answer: dict[str, Any] = result.structured_content or {}
        if self.failed:
            assert answer.keys() == {"code", "hint", "options"}
        return answer

    async def until(self, tool: str, key: str, value: object, **arguments: Any) -> dict[str, Any]:
        """Call a tool that waits by itself, until its answer says so."""
        answer: dict[str, Any] = {}
        for _ in range(20):
            answer = await self.does(tool, **arguments)
            if answer.get(key) == value:
                return answer
        raise AssertionError(answer)


@asynccontextmanager
async def in_memory(
    user: User, monkeypatch: pytest.MonkeyPatch, **flags: object
) -> AsyncIterator[Agent]:
    """An agent of this user's, in this process."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", user.environ["XDG_RUNTIME_DIR"])
    server = make_server(CommandLine(Config.load(flags, {}, cwd=Path.cwd(), home=None)))
    async with Client(server) as client:
        yield Agent(client)


@asynccontextmanager
async def over_stdio(user: User, **env: str) -> AsyncIterator[Agent]:
    """An agent of `dap-mux mcp`."""
    environ = {**os.environ, **user.environ, **env}
    asked = StdioServerParameters(
        command=str(COMMAND), args=["mcp"], env=environ, cwd=str(user.folder)
    )
    async with Client(stdio_client(asked)) as client:
        yield Agent(client)


@asynccontextmanager
async def over_http(url: str, token: str) -> AsyncIterator[Agent]:
    """An agent of `dap-mux mcp --http`."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield Agent(client)
