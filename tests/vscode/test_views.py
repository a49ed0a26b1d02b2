"""What the extension shows of a session in a real VS Code, four real ranks."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.processes.commands import User
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import (
    EXAMPLE,
    IN_A_WINDOW,
    REDUCE,
    OpenWindow,
    configuration,
    example_line,
    stopped,
)
from tests.vscode.workbench import VARIABLES, Window

pytestmark = IN_A_WINDOW
RANKS: Final = '.pane:has(> .pane-header[aria-label^="Ranks"])'
DONE: Final = example_line("is done")
WRONG: Final = "340268"  # what rank 2 has for a loss: its distances are in millimetres


async def test_the_ranks_the_status_bar_and_the_rank_that_is_wrong(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """At step 5, all at one place: who differs?"""
    window, _ = await stopped(user, own_server, open_window, "dap-mux", "step == 5")
    await _sums_up(window, "4 ranks · 4 stopped", "scope: auto")
    await window.command("Focus on Ranks View")
    place = f"4 ranks stopped at data_parallel.py:{REDUCE} in train: 0-3"
    ranks = [f"rank {rank}, stopped, train:{REDUCE}" for rank in range(4)]
    await window.has(RANKS, place, *ranks)
    await _compares(window)

    # One is kept: what is said of a session is gone with its last rank.
    await window.conditional_breakpoint(EXAMPLE, DONE, "ranks(3): True")
    await window.control("continue")
    await _sums_up(window, "4 ranks · 1 stopped · 3 exited", "scope: auto")


@pytest.mark.heavy
async def test_the_views_are_there_before_the_session(
    user: User, own_server: CodeServer, open_window: OpenWindow, free_port: int
) -> None:
    configuration(user, free_port, type="dap-mux")
    window = await open_window(own_server)
    await window.command("View: Show Run and Debug")
    await window.page.locator(RANKS).wait_for()


@pytest.mark.heavy
@pytest.mark.rest
async def test_the_side_bar_is_left_to_a_user_who_never_wants_the_debug_views(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """Also at a stop, which makes VS Code itself open them by default."""
    own_server.settings(**{"debug.openDebug": "neverOpen"})
    try:
        run = await start(user, EXAMPLE, n=4)
        name = configuration(user, (await run.session())["port"], type="dap-mux")
        window = await open_window(own_server)
        await window.toggle_breakpoint(EXAMPLE, REDUCE)
        await window.command("View: Show Explorer")
        await window.pick(f"debug {name}", name)
        await _sums_up(window, "4 ranks · 4 stopped")
        await window.stands_at(REDUCE)
        title = window.page.locator(".part.sidebar .composite.title h2")
        assert await title.inner_text() == "EXPLORER"
    finally:
        own_server.settings()


@pytest.mark.heavy
@pytest.mark.rest
async def test_they_are_there_before_the_next_session_of_type_debugpy(
    user: User, both_server: CodeServer, open_window: OpenWindow
) -> None:
    """The type alone does not say that there are ranks: the first session does."""
    window, _ = await stopped(user, both_server, open_window, "debugpy")
    await window.page.locator(RANKS).wait_for()
    await window.leave()
    await window.page.reload()
    await window.loaded()
    await window.command("View: Show Run and Debug")
    await window.page.locator(RANKS).wait_for()


async def _sums_up(window: Window, *texts: str) -> None:
    """Wait until the status bar has items with these texts."""
    items = window.page.locator(".statusbar-item")

    async def look() -> list[str]:
        return [text.strip() for text in await items.all_inner_texts()]

    await window.becomes(look, lambda seen: {*texts} <= {*seen}, f"{texts} in the status bar")


async def _compares(window: Window) -> None:
    """By the context menu of a variable."""
    await window.expand(VARIABLES, "Scope Locals")
    row = window.page.locator(f'{VARIABLES} .monaco-list-row[aria-label^="loss, value"]')
    await window.context_menu(row, "Compare Across Ranks")
    page = await window.webview("#groups")
    assert await page.locator("#summary").inner_text() == "4 ranks · 4 different values · 1 outlier"
    wrong = await page.locator("#groups tbody tr").first.inner_text()
    assert WRONG in wrong
    assert wrong.split()[:2] == ["⚠", "{2}"]
    assert wrong.split()[-1] == "outlier"
