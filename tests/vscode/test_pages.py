"""The extension's page and its walkthrough, as they are in a real VS Code: pictures are there."""

from __future__ import annotations

import pytest

from tests.vscode.code_server import CodeServer
from tests.vscode.scene import OpenWindow
from tests.vscode.workbench import Window

pytestmark = [
    pytest.mark.alone,
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="session"),
]
WIDTHS = "() => [...document.images].map(image => image.complete && image.naturalWidth)"


async def test_every_picture_is_shown(own_server: CodeServer, open_window: OpenWindow) -> None:
    window = await open_window(own_server)
    await window.page.keyboard.press("Control+Shift+X")
    await window.page.locator('.extension-list-item:has-text("dap-mux")').first.click()
    await _pictures(window, "Four ranks at one line", 4)

    await window.command("View: Close All Editors")
    await window.command("dap-mux: Get Started")
    await window.page.locator(".getting-started-step", has_text="Control the ranks").click()
    await _pictures(window, "The mouse on a variable", 1)
    steps = await window.page.locator(".getting-started-step").all_text_contents()
    assert len(steps) == 5
    assert not [step for step in steps if "`" in step], "code that is not shown as code"


async def _pictures(window: Window, about: str, count: int) -> None:
    """Wait until so many pictures, one of them this, are in a page, every one of them loaded."""

    async def widths() -> list[int]:
        page = await window.webview(f'img[alt^="{about}"]')
        found: list[int] = await page.evaluate(WIDTHS)
        return found

    await window.becomes(widths, lambda seen: len(seen) == count and all(seen), "the pictures")
