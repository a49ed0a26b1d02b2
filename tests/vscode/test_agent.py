"""A person in a real VS Code beside a coding agent: F5 takes the ranks over from it."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import pytest

from tests.real.agents.agent import TRAIN, in_memory
from tests.support.processes.commands import User, line_of
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.row_buttons import observer_of
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration, stand

pytestmark = IN_A_WINDOW
AGENT: Final = "dap-mux mcp"


async def test_the_key_to_continue_takes_over_from_an_agent(
    user: User,
    stock_server: CodeServer,
    open_window: OpenWindow,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = user.script(TRAIN)
    line = line_of(path, "return") - 1
    run = await start(user, path, n=2)
    name = configuration(user, (await run.session())["port"], type="debugpy")
    window = await open_window(stock_server)
    await window.toggle_breakpoint("train.py", line)
    await window.start(name)
    await window.shows("paused", "paused")
    await window.stands_at(line)
    watch = await observer_of(run, "lease")
    async with in_memory(user, monkeypatch) as agent:
        await agent.does("go", action="next", request_id="1", wait=25)
        await window.stands_at(line + 1)
        held = await watch.wait_event("lease", lambda lease: lease["holder"] == AGENT)
        assert held["act"] == "stepping 0-1"

        pressed = time.monotonic()
        free = asyncio.create_task(watch.wait_event("lease", lambda lease: not lease["holder"]))
        await window.page.keyboard.press("F5")
        await free
        print(f"from the key F5 to the event `lease`: {1000 * (time.monotonic() - pressed):.0f} ms")

        await window.stands_at(line)
        await stand(run, "stopped", "stopped")
        answer = await agent.does("go", action="continue", request_id="2")
        assert (agent.failed, answer["code"]) == (True, "lease-lost")
        assert answer["hint"].startswith("vscode has taken over")
        answer = await agent.does("status")
        assert f"vscode takes over from {AGENT}" in answer["notices"]
        assert answer["lease"] == {"holder": "", "act": "", "lostTo": "vscode"}
    await watch.disconnect()
    await window.leave()
