"""The doctor in a real VS Code: its verdict is in sight when it has ended."""

from __future__ import annotations

import json
from typing import Final

import pytest

from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, OpenWindow

VERDICT: Final = "problem found:"
pytestmark = [*IN_A_WINDOW, pytest.mark.heavy, pytest.mark.usefixtures("quiet")]


async def test_the_verdict_is_what_one_sees_at_the_end(
    user: User, own_server: CodeServer, open_window: OpenWindow, free_port: int
) -> None:
    """Nothing is scrolled: what an editor has in sight is all that it has in its page."""
    connect = {"host": "localhost", "port": free_port}
    one = {"name": "Nobody", "type": "dap-mux", "request": "attach", "connect": connect}
    (user.folder / ".vscode").mkdir()
    (user.folder / ".vscode/launch.json").write_text(
        json.dumps({"version": "0.2.0", "configurations": [one]}), "utf-8"
    )
    window = await open_window(own_server)
    await window.open_file(EXAMPLE, 1)
    await window.extension()
    await window.command("dap-mux: Doctor: Check This Machine")

    async def written() -> str:
        logs = own_server.folder.glob("user/logs/**/*dap-mux Doctor.log")
        return "".join(log.read_text("utf-8") for log in logs)

    def complete(text: str) -> bool:
        return all(part in text for part in ("sessions\n", "config show\n", VERDICT))

    async def in_sight() -> str:
        lines = await window.page.locator(".output-view .view-line").all_inner_texts()
        return "\n".join(lines).replace("\xa0", " ")

    await window.becomes(written, complete, "every report")
    seen = await window.becomes(in_sight, lambda text: VERDICT in text, "the verdict in sight")
    verdict = seen.partition(VERDICT)[2]
    assert f"connection refused: nothing listens on localhost:{free_port}" in verdict
    assert "do:" in verdict
