"""An agent over HTTP: who is let in, and what happens when it calls no more."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from typing import Final

import httpx2
import pytest

from tests.real.agents.agent import TRAIN, over_http
from tests.support.processes.commands import Command, User, listed
from tests.support.processes.run_command import start

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]
IDLE_S: Final = 3
REQUEST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


async def serving(user: User, *options: str) -> tuple[Command, str, str]:
    """Start it; return its URL and its token."""
    run = await user.start("mcp", "--http", "0", *options)
    await run.says("with the token in")
    found = re.search(r"at (http://127\.0\.0\.1:\d+/mcp), with the token in (\S+)", run.err)
    assert found
    return run, found[1], (await asyncio.to_thread(Path(found[2]).read_text)).strip()


async def test_strangers_and_pages_of_browsers_are_refused(user: User) -> None:
    _, url, token = await serving(user)
    right = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    port = httpx2.URL(url).port
    cases: tuple[tuple[dict[str, str], int], ...] = (
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer " + "x" * 43}, 401),
        ({"Authorization": f"Basic {token}"}, 401),
        ({"Host": f"evil.example:{port}"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://127.0.0.1:{port}"}, 403),
    )
    async with httpx2.AsyncClient() as client:
        for headers, code in cases:
            for method in ("GET", "POST", "DELETE"):
                given = {**right, **headers}
                response = await client.request(method, url, json=REQUEST, headers=given)
                assert response.status_code == code, (method, headers, response.text)
                if code == 401:
                    assert response.json()["code"] == "no-token"
                assert token not in response.text
        big = await client.post(url, content=b"x" * 5_000_000, headers=right)
        assert big.status_code == 413
        wrong = await client.post(url, content=b"{", headers={**right, "Content-Type": "text/html"})
        assert wrong.status_code == 400


async def test_the_lease_ends_with_the_calls_and_its_ranks_run_on(user: User) -> None:
    run = await start(user, user.script(TRAIN), n=2)
    _, url, token = await serving(user, "--lease-timeout", str(IDLE_S))
    human = await run.client("human")
    await human.handshake({"justMyCode": True}, client_id="vscode")
    await listed(human, "state", *["running"] * 2)
    async with over_http(url, token) as agent:
        await agent.does("breakpoints", action="set", place="step")
        stop = await agent.does("go", action="pause", request_id="1", wait=25)
        assert stop["state"] == "stopped"
        await agent.does("wait_for_stop", wait=IDLE_S + 1, ranks="0")
        begin = time.monotonic()
        await listed(human, "state", *["running"] * 2)
        assert time.monotonic() - begin >= IDLE_S - 1
        answer = await agent.does("status")
        assert answer["agent"] == "looks"
        assert f"no call for {IDLE_S} s: the lease has ended" in answer["notices"]
        moved = await agent.does("go", action="pause", request_id="2", wait=25)
        assert moved["state"] == "stopped"


async def test_a_token_file_is_the_users_and_wrong_options_are_named(user: User) -> None:
    file = user.folder / "agents.token"
    _, url, token = await serving(user, "--token-file", str(file))
    assert file.read_text().strip() == token
    async with over_http(url, token) as agent:
        assert (await agent.does("status"))["sessions"] == []
    port = str(httpx2.URL(url).port)
    for words in (("--http", port), ("--http", "x"), ("--http", "0", "--lease-timeout", "0")):
        done = await (await user.start("mcp", *words)).ends()
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"dap-mux: {words[-2]} {words[-1]}: ")
        assert done.err.count("\n") == 1
