"""What the extension shows of a session in a real VS Code, four real ranks."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.processes.commands import User
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.scene import (
    EXAMPLE,
    IN_A_WINDOW,
    REDUCE,
    OpenWindow,
    configuration,
    example_line,
    stopped,
)
from tests.vscode.test_language import hint, says_who_differs
from tests.vscode.test_ranks_view import ON_THE_NAME
from tests.vscode.workbench import RANKS, Window

pytestmark = IN_A_WINDOW
DONE: Final = example_line("is done")


async def test_the_ranks_the_status_bar_the_text_and_a_condition(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """At step 5, all at one place; who differs is in `test_compare`, too."""
    window, run = await stopped(user, own_server, open_window, "dap-mux", "step == 5")
    own_server.knows(run.session_path)
    await window.page.set_viewport_size({"width": 1900, "height": 1300})
    await _rows_have_every_button(window)
    await hint(window, "0-3")
    await says_who_differs(window)
    await _sums_up(window, "4 ranks · 4 stopped", "scope: auto")
    await window.command("Focus on Ranks View")
    place = f"4 ranks stopped at data_parallel.py:{REDUCE} in train: 0-3"
    ranks = [f"rank {rank}, stopped, train:{REDUCE}" for rank in range(4)]
    await window.has(RANKS, place, *ranks)
    await _rank_sets_and_our_words_are_completed(window)

    # One is kept: what is said of a session is gone with its last rank.
    await window.conditional_breakpoint(EXAMPLE, DONE, "ranks(3): True")
    await window.control("continue")
    await _sums_up(window, "4 ranks · 1 stopped · 3 exited", "scope: auto")


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


async def _rows_have_every_button(window: Window) -> None:
    """Of a view that nobody has opened, nor a row of it."""
    row = window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank 3, stopped"]').first
    await row.wait_for(timeout=LIMIT * 1000)
    await row.hover()
    for button in ("Continue", "Step Over", "Step Into", "Step Out"):
        await row.locator(f'.action-label[aria-label^="{button}"]').wait_for()
    await row.click(button="right", position=ON_THE_NAME)
    menu = window.page.locator(".monaco-menu .action-item")
    for item in ("Compare Across Ranks", "Release Ranks"):
        await menu.filter(has_text=item).first.wait_for()
    await window.page.keyboard.press("Escape")


async def _rank_sets_and_our_words_are_completed(window: Window) -> None:
    """In the box of a condition, wherever VS Code has it from."""
    await window.console("%groups slow 1,3")
    await window.open_file(EXAMPLE, REDUCE + 1)
    await window.command("Debug: Add Conditional Breakpoint...")
    box = window.page.locator(".breakpoint-widget .monaco-editor").first
    await box.click()
    typed = {
        "ran": ["ranks()", "ranks(0-3): "],
        "slo": ["@slow: "],
        "barr": ["barrier", "barrier: "],
        "diff": ["differ: "],
    }
    for beginning, labels in typed.items():
        await window.page.keyboard.press("Control+a")
        await window.page.keyboard.type(beginning)
        await _offers(window, *labels)
        if beginning != "diff":
            await window.page.keyboard.press("Escape")
    await window.page.keyboard.press("Enter")

    async def text() -> str:
        return (await box.inner_text()).replace("\xa0", " ").strip()

    await window.becomes(text, "differ: loss".__eq__, "the word, and what it takes")
    for _ in range(2):  # what it takes is selected; then the box
        await window.page.keyboard.press("Escape")
    await box.wait_for(state="hidden")


async def _offers(window: Window, *labels: str) -> None:
    """Wait until the suggestions have all of these."""
    rows = window.page.locator(".suggest-widget .monaco-list-row .label-name")

    async def look() -> list[str]:
        return [label.replace("\xa0", " ") for label in await rows.all_inner_texts()]

    wanted = {label.strip() for label in labels}
    await window.becomes(
        look, lambda seen: wanted <= {label.strip() for label in seen}, f"{labels} are offered"
    )
