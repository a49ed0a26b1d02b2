"""What the extension has in a real VS Code while nothing is debugged: views, and what is wrong."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, OpenWindow, launch_json
from tests.vscode.terminal import rank_processes
from tests.vscode.workbench import RANKS, Window

VERDICT: Final = "problem found:"
pytestmark = [*IN_A_WINDOW, pytest.mark.heavy, pytest.mark.usefixtures("quiet")]


async def test_the_views_are_there_and_what_is_wrong_is_said(
    user: User, own_server: CodeServer, open_window: OpenWindow, free_port: int
) -> None:
    """Nobody listens where one configuration points; the Python of the other is nowhere."""
    connect = {"host": "localhost", "port": free_port}
    python = str(user.folder / "bin" / "python")
    launch_json(
        user,
        {"name": "Nobody", "request": "attach", "connect": connect},
        {"name": "Nowhere", "request": "launch", "program": EXAMPLE, "python": python},
    )
    window = await open_window(own_server)
    await window.command("View: Show Run and Debug")
    await window.page.locator(RANKS).wait_for()
    await window.open_file(EXAMPLE, 1)
    await window.extension()
    await _the_verdict_is_what_one_sees_at_the_end(window, own_server, free_port)
    await _a_python_without_dap_mux_is_named_with_an_offer(window, python)
    assert not rank_processes(own_server)


async def _the_verdict_is_what_one_sees_at_the_end(
    window: Window, server: CodeServer, port: int
) -> None:
    """Nothing is scrolled: what an editor has in sight is all that it has in its page."""
    await window.command("dap-mux: Doctor: Check This Machine")

    async def written() -> str:
        logs = server.folder.glob("user/logs/**/*dap-mux Doctor.log")
        return "".join(log.read_text("utf-8") for log in logs)

    def complete(text: str) -> bool:
        return all(part in text for part in ("sessions\n", "config show\n", VERDICT))

    async def in_sight() -> str:
        lines = await window.page.locator(".output-view .view-line").all_inner_texts()
        return "\n".join(lines).replace("\xa0", " ")

    await window.becomes(written, complete, "every report")
    seen = await window.becomes(in_sight, lambda text: VERDICT in text, "the verdict in sight")
    verdict = seen.partition(VERDICT)[2]
    assert f"connection refused: nothing listens on localhost:{port}" in verdict
    assert "do:" in verdict


async def _a_python_without_dap_mux_is_named_with_an_offer(window: Window, python: str) -> None:
    await window.pick("debug Nowhere", "Nowhere")
    toast = window.page.locator(".notification-toast", has_text="dap-mux is not installed for")
    await toast.first.wait_for(timeout=LIMIT * 1000)
    assert python in await toast.first.inner_text()
    await toast.get_by_text("Install in a Terminal").click()
    failed = window.page.locator(".notification-toast", has_text="Installing dap-mux for")
    await failed.first.wait_for(timeout=LIMIT * 1000)
    assert python in await failed.first.inner_text()
