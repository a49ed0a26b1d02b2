"""Ranks are looked at and driven by somebody who has no mouse."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import REDUCE, OpenWindow, stand, stopped
from tests.vscode.workbench import RANKS, VARIABLES, Window

pytestmark = [
    pytest.mark.alone,
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="session"),
]
FOCUSED: Final = f"{RANKS} .monaco-list-row.focused"
LOSS_OF_RANK_2: Final = "loss = 3.3732467685775083"


async def test_the_focus_a_row_and_its_menu(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """Down to a rank, Enter looks at it, and the menu key has all that its row's buttons do."""
    window, run = await stopped(user, own_server, open_window, "dap-mux")
    await window.expand(VARIABLES, "Scope Locals")
    keyboard = window.page.keyboard
    await window.command("Focus on Ranks View")
    await window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank 3"]').wait_for()
    await keyboard.press("Home")
    for _ in range(3):
        await keyboard.press("ArrowDown")
    await _is_on(window, "rank 2, stopped")
    await keyboard.press("Enter")
    await window.has(VARIABLES, LOSS_OF_RANK_2, inside=["Scope Locals"])
    await window.stands_at(REDUCE)

    await window.command("Focus on Ranks View")
    await _is_on(window, "rank 2, stopped")
    await keyboard.press("Shift+F10")
    menu = window.page.locator(".monaco-menu .action-item")
    for item in ("Step Over", "Step Into", "Step Out", "Continue", "Compare", "Release"):
        await menu.filter(has_text=item).first.wait_for()
    selected = window.page.locator(".monaco-menu .action-item.focused")
    for _ in range(await menu.count()):
        await keyboard.press("ArrowDown")
        if "Continue" in await selected.inner_text():
            break
    await keyboard.press("Enter")
    await stand(run, "stopped", "stopped", "running", "stopped")


async def _is_on(window: Window, label: str) -> None:
    """Wait until this row of Ranks has the keyboard."""
    await window.page.locator(f'{FOCUSED}[aria-label^="{label}"]').wait_for()
