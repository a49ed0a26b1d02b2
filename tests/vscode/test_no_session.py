"""A configuration that points where nothing listens, in a real VS Code: what is offered instead."""

from __future__ import annotations

import re
import sys
from typing import Final

import pytest
from playwright.async_api import Locator

from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, REDUCE, OpenWindow, pointing_at
from tests.vscode.terminal import RUN, in_terminal, run_to_their_end
from tests.vscode.workbench import CALL_STACK, Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy, pytest.mark.usefixtures("quiet")]
NAME: Final = "Remote Attach to Cluster"


@pytest.mark.rest
async def test_a_session_on_another_port_is_offered(
    user: User, own_server: CodeServer, open_window: OpenWindow, free_port: int
) -> None:
    pointing_at(user, free_port)
    window = await open_window(own_server)
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await in_terminal(window, RUN)
    dialog = await _refused(window, free_port, offer=re.compile(r"Attach to \d+"))
    assert "ECONNREFUSED" not in await dialog.inner_text()
    await dialog.get_by_role("button", name=re.compile(r"Attach to \d+")).first.click()
    await _leave_stopped(window)


async def test_ranks_can_be_started_instead_or_a_session_waited_for_and_joined_once(
    user: User, own_server: CodeServer, open_window: OpenWindow, free_port: int
) -> None:
    """Also where it announces itself to the window: it has one client then, not two."""
    own_server.settings()  # announcements are on
    pointing_at(user, free_port)
    window = await open_window(own_server)
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.extension()
    dialog = await _refused(window, free_port)
    await dialog.get_by_role("button", name="Start Ranks of This File").click()
    question = window.page.locator(".quick-input-message", has_text="How many ranks?")
    await question.wait_for(timeout=LIMIT * 1000)
    await window.page.keyboard.press("Escape")
    await question.wait_for(state="hidden")

    dialog = await _refused(window, free_port)
    await dialog.get_by_role("button", name="Wait", exact=True).click()
    waiting = window.page.locator(".notification-toast", has_text=f"localhost:{free_port}").first
    await waiting.wait_for(timeout=LIMIT * 1000)
    assert await window.page.locator(".debug-toolbar").is_hidden()
    run = f"{sys.executable} -m dap_mux run -n 2 --listen 127.0.0.1:{free_port} {EXAMPLE}"
    await in_terminal(window, run)
    await _leave_stopped(window)
    await run_to_their_end(window, own_server)


async def _leave_stopped(window: Window) -> None:
    await window.command("View: Show Run and Debug")
    await window.shows("paused", "paused")
    await window.stands_at(REDUCE)
    labels = [row.label for row in await window.rows(CALL_STACK)]
    assert len([label for label in labels if label.startswith("Thread rank 0 ")]) == 1
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.leave()


async def _refused(window: Window, port: int, offer: re.Pattern[str] | None = None) -> Locator:
    """Start the configuration until the dialog comes up (and offers this)."""
    dialog = window.page.locator(".monaco-dialog-box", has_text=f"listening on localhost:{port}")
    while True:
        await window.pick(f"debug {NAME}", NAME)
        await dialog.wait_for(timeout=LIMIT * 1000)
        if offer is None or await dialog.get_by_role("button", name=offer).count():
            return dialog
        await dialog.get_by_role("button", name="Cancel").click()
