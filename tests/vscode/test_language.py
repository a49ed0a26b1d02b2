"""The language server as a real VS Code shows it: hints and hover."""

from __future__ import annotations

import re

import pytest

from tests.support.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import OpenWindow, stopped

pytestmark = [
    pytest.mark.real,
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
    said = await window.hover("loss, grad = model", "loss")
    assert "340268" in said
    assert "outlier" in said
