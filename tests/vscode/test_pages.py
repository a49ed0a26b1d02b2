"""The extension's page and its walkthrough, as they are in a real VS Code: pictures are there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, OpenWindow
from tests.vscode.workbench import Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
SHOWN = "image => [image.currentSrc, image.complete ? image.naturalWidth : 0]"
WIDTHS = "() => [...document.images].map(image => image.complete && image.naturalWidth)"


async def test_the_walkthrough_starts_ranks_and_every_picture_is_shown(
    own_server: CodeServer, open_window: OpenWindow
) -> None:
    """Its page is in front of the script of the ranks, so that no editor is the active one."""
    window = await open_window(own_server)
    await _starts_ranks(window)

    await window.page.keyboard.press("Control+Shift+X")
    await window.page.locator('.extension-list-item:has-text("dap-mux")').first.click()
    await _pictures(window, "Four ranks at one line", 4)

    await window.command("View: Close All Editors")
    await window.command("dap-mux: Get Started")
    await window.page.locator(".getting-started-step", has_text="Control the ranks").click()
    await _picture_of_the_theme(window, "dark")
    steps = await window.page.locator(".getting-started-step").all_text_contents()
    assert len(steps) == 5
    assert not [step for step in steps if "`" in step], "code that is not shown as code"


@pytest.mark.rest
async def test_the_walkthrough_in_a_light_theme(
    own_server: CodeServer, open_window: OpenWindow
) -> None:
    own_server.settings(**{"workbench.colorTheme": "Default Light Modern"})
    try:
        window = await open_window(own_server)
        await window.command("dap-mux: Get Started")
        await window.page.locator(".getting-started-step", has_text="Control the ranks").click()
        await _picture_of_the_theme(window, "light")
    finally:
        own_server.settings()


async def _starts_ranks(window: Window) -> None:
    """Up to the question how many."""
    await window.open_file(EXAMPLE, 1)
    await window.command("dap-mux: Get Started")
    await window.page.locator(".getting-started-step", has_text="Start the ranks").click()
    installed = window.page.locator(".getting-started-step", has_text="Install dap-mux")
    await installed.locator(
        ".codicon-getting-started-step-checked"
    ).first.wait_for()  # the Python has it already
    step = window.page.locator(".getting-started-step.expanded")
    await step.get_by_role("button", name="Start Ranks of This File", exact=True).click()
    question = window.page.locator(".quick-input-message", has_text="How many ranks?")
    await question.wait_for(timeout=LIMIT * 1000)
    await window.page.keyboard.press("Escape")
    await question.wait_for(state="hidden")


async def _picture_of_the_theme(window: Window, theme: str) -> None:
    """Wait until the walkthrough shows the picture that was taken in this theme."""
    picture = window.page.locator('img[alt^="The mouse on a variable"]')

    async def look() -> tuple[str, int]:
        shown: list[Any] = await picture.evaluate(SHOWN)
        return shown[0], shown[1]

    await window.becomes(
        look, lambda seen: f"hover-{theme}.png" in seen[0] and seen[1] > 0, f"a {theme} picture"
    )


async def _pictures(window: Window, about: str, count: int) -> None:
    """Wait until so many pictures, one of them this, are in a page, every one of them loaded."""

    async def widths() -> list[int]:
        page = await window.webview(f'img[alt^="{about}"]')
        found: list[int] = await page.evaluate(WIDTHS)
        return found

    await window.becomes(widths, lambda seen: len(seen) == count and all(seen), "the pictures")
