"""The language server as a real VS Code shows it: hints, hover, and a fix for a breakpoint."""

from __future__ import annotations

import re

import pytest

from tests.support.processes.commands import User
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import EXAMPLE, REDUCE, OpenWindow, configuration, mappings, stopped

pytestmark = [
    pytest.mark.alone,
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="session"),
]


async def test_where_ranks_stand_and_what_a_name_is_there(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    window, run = await stopped(user, own_server, open_window, "dap-mux", "step == 5")
    own_server.knows(run.session_path)
    line = window.page.locator(".view-line", has_text="mean_grad = world.all_reduce_mean(grad)")

    async def text() -> str:
        return await line.inner_text()

    await window.becomes(text, lambda seen: re.search(r"●\s0-3", seen), "a hint behind the line")
    await window.hover("loss, grad = model", "loss", "340268", "outlier")


async def test_a_breakpoint_that_ranks_lack_is_mended(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """The ranks run the same program in another folder, which launch.json does not know."""
    run = await start(user, EXAMPLE, "--steps", "100000", n=2)
    wrong = [{"localRoot": "${workspaceFolder}", "remoteRoot": "/nowhere"}]
    port = (await run.session())["port"]
    own_server.knows(run.session_path)
    name = configuration(user, port, type="dap-mux", pathMappings=wrong)
    window = await open_window(own_server)
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.start(name)
    await window.page.locator(".squiggly-warning").first.wait_for()
    launch = user.folder / ".vscode/launch.json"
    mended = {"localRoot": "${workspaceFolder}", "remoteRoot": str(user.folder)}
    there = "Add path mapping to"
    await window.quick_fix(EXAMPLE, REDUCE, there, lambda: mappings(launch) == [mended])
