"""Takes the pictures of the documentation anew, light and dark: `make pictures`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer, chromium, serving
from tests.vscode.scene import REPOSITORY, copied_example, stopped
from tests.vscode.workbench import CONSOLE, VARIABLES, Row, Window, browsing, new_window

MEDIA: Final = REPOSITORY / "vscode-extension" / "media"
PACKAGE: Final = REPOSITORY / "vscode-extension/dist/dap-mux.vsix"
THEMES: Final = {"dark": "vs-dark", "light": "vs"}
RANKS: Final = '.pane:has(> .pane-header[aria-label^="Ranks"])'
STACK: Final = '.pane:has(> .pane-header[aria-label="Call Stack Section"])'
QUIET: Final = {
    "workbench.layoutControl.enabled": False,
    "workbench.activityBar.location": "hidden",
    "debug.console.fontSize": 13,
}


async def main() -> None:
    """One session, at the step at which a rank is wrong."""
    with tempfile.TemporaryDirectory(prefix="pictures-") as name:
        user = User(Path(name))
        copied_example(user)
        home = Path(name) / "home"
        async with serving(home, packages=[PACKAGE]) as server, browsing(chromium()) as browser:
            server.settings(**QUIET)

            async def opened(server: CodeServer) -> Window:
                window = await new_window(browser, user.folder)
                await window.page.set_viewport_size({"width": 1280, "height": 800})
                await window.open(server.port)
                return window

            try:
                window, run = await stopped(user, server, opened, "dap-mux", "step == 5")
                server.knows(run.session_path)
                await _take(window)
                await window.close()
            finally:
                await user.close()


async def _take(window: Window) -> None:
    await _widen(window)
    await window.page.locator('.pane-header[aria-label="Watch Section"]').click()
    await window.page.locator('.pane-header[aria-label="Breakpoints Section"]').click()
    await window.command("Focus on Ranks View")
    await window.console("cast ranks(0:4) p loss")
    await window.becomes(lambda: window.rows(CONSOLE), _merged, "the merged answer")
    await window.page.locator(".view-line", has_text="● 0-3").first.wait_for()
    await window.expand(VARIABLES, "Scope Locals")
    await _picture(window, "overview", ".monaco-workbench")
    await _picture(window, "ranks", RANKS)
    await _picture(window, "call-stack", STACK)
    await _picture(window, "status-bar", ".part.statusbar .left-items")
    row = window.page.locator(f'{VARIABLES} .monaco-list-row[aria-label^="loss, value"]')
    await window.context_menu(row, "Compare Across Ranks")
    await window.webview("#groups tbody tr")
    await window.command("View: Toggle Panel Visibility")
    await _picture(window, "compare", ".editor-group-container.active")


def _merged(rows: list[Row]) -> bool:
    return any("340268" in str(row) for row in rows)


async def _widen(window: Window) -> None:
    """Drag the side bar's edge: names are not cut then."""
    edge = await window.page.locator(".part.sidebar").bounding_box()
    assert edge
    mouse, right = window.page.mouse, edge["x"] + edge["width"]
    await mouse.move(right, 400)
    await mouse.down()
    await mouse.move(right + 80, 400, steps=5)
    await mouse.up()


async def _picture(window: Window, name: str, part: str) -> None:
    """One part of the window, in each theme."""
    for theme, kind in THEMES.items():
        if not await window.page.locator(f".monaco-workbench.{kind}").count():
            await window.command("Preferences: Toggle between Light/Dark Themes")
        await window.page.locator(f".monaco-workbench.{kind}").wait_for()
        await window.page.mouse.move(640, 3)
        await window.page.locator(part).first.screenshot(path=MEDIA / f"{name}-{theme}.png")


if __name__ == "__main__":
    asyncio.run(main())
