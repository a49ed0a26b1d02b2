"""Takes the pictures of the documentation anew, light and dark: `make pictures`.

Those of four real ranks are the documentation's. Those of 64 and 512 simulated ranks are for
whoever changes a view, in build/pictures: look at each of them.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from dap_mux.engine import Settings
from tests.support.fake_rank.program import FIRST, SCRIPT
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.waiting import until
from tests.support.session import session
from tests.vscode.code_server import CodeServer, chromium, serving
from tests.vscode.fake_job import fake_job
from tests.vscode.scene import REPOSITORY, OpenWindow, configuration, copied_example, stopped
from tests.vscode.workbench import CALL_STACK, CONSOLE, VARIABLES, Row, Window, browsing, new_window

MEDIA: Final = REPOSITORY / "vscode-extension" / "media"
WALKTHROUGH: Final = MEDIA.parent / "walkthrough"  # it shows none from another folder
REVIEWED: Final = REPOSITORY / "build/pictures"
MANY: Final = (64, 512)
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
    """One session at the step at which a rank is wrong, then the jobs of many ranks."""
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
                await _four_ranks(user, server, opened)
                for count in MANY:
                    await _many_ranks(user, await opened(server), count)
            finally:
                await user.close()


async def _four_ranks(user: User, server: CodeServer, opened: OpenWindow) -> None:
    window, run = await stopped(user, server, opened, "dap-mux", "step == 5")
    server.knows(run.session_path)
    await _widen(window)
    await window.page.locator('.pane-header[aria-label="Watch Section"]').click()
    await window.page.locator('.pane-header[aria-label="Breakpoints Section"]').click()
    await window.command("Focus on Ranks View")
    await window.console("cast ranks(0:4) p loss")
    await window.becomes(lambda: window.rows(CONSOLE), _merged, "the merged answer")
    await window.page.locator(".view-line", has_text="● 0-3").first.wait_for()
    await window.expand(VARIABLES, "Scope Locals")
    await _picture(window, MEDIA, "overview", ".monaco-workbench")
    await _picture(window, MEDIA, "ranks", RANKS)
    await _picture(window, MEDIA, "call-stack", STACK)
    await _picture(window, MEDIA, "status-bar", ".part.statusbar .left-items")
    await _hover_picture(window)
    await _compare_picture(window, MEDIA, "compare", "loss")
    await window.leave()
    await window.close()


async def _many_ranks(user: User, window: Window, count: int) -> None:
    """All at one line but three: one elsewhere, one with another value, one that still runs."""
    user.script(SCRIPT)
    async with (
        fake_job(count, user.folder / "train.py") as job,
        session(job.ports, settings=Settings()) as running,
    ):
        for rank in job.ranks:
            rank.data.values["loss"] = f"{2.25 + rank.number / 1000:.3f}"
        job.ranks[5].data.values["loss"] = "nan"
        name = configuration(user, running.port, type="dap-mux", name=f"{count} ranks")
        await window.start(name)
        await until(
            lambda: all(rank.configured for rank in job.ranks), within=LIMIT, what="all attached"
        )
        job.stop(FIRST, {7: FIRST + 2})

        async def looked() -> list[str]:
            return [row.text for row in await window.rows(CALL_STACK)]

        await window.becomes(looked, lambda seen: len(seen) > len(MANY), "CALL STACK")
        await _widen(window)
        await window.page.locator('.pane-header[aria-label="Watch Section"]').click()
        await window.page.locator('.pane-header[aria-label="Breakpoints Section"]').click()
        await window.command("Focus on Ranks View")
        await window.expand(VARIABLES, "Scope Locals")
        await _picture(window, REVIEWED, f"overview-{count}", ".monaco-workbench")
        await _compare_picture(window, REVIEWED, f"compare-{count}", "loss")
        await window.leave()
    await window.close()


async def _hover_picture(window: Window) -> None:
    for theme in THEMES:
        await _themed(window, theme)
        # the same word again would show nothing, because VS Code has been there last
        await window.point_at("grad_norm = math.hypot", "grad_norm")
        await _point_at_nothing(window)
        await window.page.locator(".debug-hover-widget").wait_for(state="hidden")
        await window.point_at("loss, grad = model", "loss")
        await window.unfolded()
        await window.page.locator(".editor-group-container.active").first.screenshot(
            path=WALKTHROUGH / f"hover-{theme}.png"
        )


async def _compare_picture(window: Window, folder: Path, name: str, variable: str) -> None:
    row = window.page.locator(f'{VARIABLES} .monaco-list-row[aria-label^="{variable}, value"]')
    await window.context_menu(row, "Compare Across Ranks")
    await window.webview("#groups tbody tr")
    await window.command("View: Toggle Panel Visibility")
    await _picture(window, folder, name, ".editor-group-container.active")
    await window.command("View: Toggle Panel Visibility")


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


async def _picture(window: Window, folder: Path, name: str, part: str) -> None:
    """One part of the window, in each theme."""
    for theme in THEMES:
        await _themed(window, theme)
        await window.page.locator(part).first.screenshot(path=folder / f"{name}-{theme}.png")


async def _themed(window: Window, theme: str) -> None:
    kind = f".monaco-workbench.{THEMES[theme]}"
    if not await window.page.locator(kind).count():
        await window.command("Preferences: Toggle between Light/Dark Themes")
    await window.page.locator(kind).wait_for()
    await _point_at_nothing(window)


async def _point_at_nothing(window: Window) -> None:
    await window.page.mouse.move(3, 3)


if __name__ == "__main__":
    asyncio.run(main())
