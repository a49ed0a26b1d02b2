"""A window, and how a part of it becomes a picture in each theme."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Literal

from playwright.async_api import FloatRect

from tests.vscode.scene import REPOSITORY
from tests.vscode.workbench import VARIABLES, Window

MEDIA: Final = REPOSITORY / "vscode-extension" / "media"
WALKTHROUGH: Final = MEDIA.parent / "walkthrough"  # it shows none from another folder
REVIEWED: Final = REPOSITORY / "build/pictures"
PACKAGE: Final = REPOSITORY / "vscode-extension/dist/dap-mux.vsix"
WHOLE: Final = ".monaco-workbench"
PICKER: Final = ".quick-input-widget"
EDITOR: Final = ".editor-group-container.active"
SIDE_BAR: Final = ".part.sidebar"
SETTINGS: Final = {
    "window.autoDetectColorScheme": True,  # the theme follows the browser: what is open stays open
    "workbench.layoutControl.enabled": False,
    "workbench.activityBar.location": "hidden",
    "debug.console.fontSize": 13,
}
_Scheme = Literal["light", "dark"]
# The theme, what the browser says that the user prefers, and the class that the window gets of it.
_THEMES: Final[tuple[tuple[str, _Scheme, Literal["active", "none"], str], ...]] = (
    ("light", "light", "none", "vs"),
    ("contrast-light", "light", "active", "hc-light"),
    ("contrast", "dark", "active", "hc-black"),
    ("dark", "dark", "none", "vs-dark"),
)
_WIDER: Final = 80  # px


class Camera:
    """Takes pictures of one window."""

    def __init__(self, window: Window) -> None:
        self.window = window

    async def take(
        self,
        name: str,
        part: str | FloatRect = WHOLE,
        folder: Path = REVIEWED,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """One part of the window, or a rectangle of it (px), in each theme; dark is what remains.

        High contrast is for review alone. `before`: what is done in each theme first, for what does
        not follow a change of it.
        """
        page = self.window.page
        for theme, scheme, forced, kind in _THEMES:
            if forced == "active" and folder != REVIEWED:
                continue
            await page.emulate_media(color_scheme=scheme, forced_colors=forced)
            await page.locator(f".monaco-workbench.{kind}").wait_for()
            if before is not None:
                await before()
            path = folder / f"{name}-{theme}.png"
            if isinstance(part, str):
                await page.locator(part).first.screenshot(path=path)
            else:
                await page.screenshot(path=path, clip=part)

    async def point_at_nothing(self) -> None:
        """Move the mouse where nothing reacts to it."""
        await self.window.page.mouse.move(3, 3)

    async def widen(self) -> None:
        """Drag the side bar's edge: names are not cut then."""
        edge = await self.window.page.locator(SIDE_BAR).bounding_box()
        assert edge
        mouse, right = self.window.page.mouse, edge["x"] + edge["width"]
        await mouse.move(right, 400)
        await mouse.down()
        await mouse.move(right + _WIDER, 400, steps=5)
        await mouse.up()
        await self.point_at_nothing()

    async def side_bar(self) -> None:
        """Show Variables, Call Stack and Ranks, with room for them."""
        await self.widen()
        for view in ("Watch", "Breakpoints"):
            await self.window.page.locator(f'.pane-header[aria-label="{view} Section"]').click()
        await self.window.command("Focus on Ranks View")
        await self.window.expand(VARIABLES, "Scope Locals")

    async def compare(self, variable: str, name: str, folder: Path = REVIEWED) -> None:
        """Open the Compare view of a variable, and take it."""
        await self._page("Compare Across Ranks", "#groups tbody tr", variable, name, folder)

    async def watch(self, variable: str, name: str) -> None:
        """Add a variable to the Parallel Watch, and take that."""
        await self._page("Parallel Watch", "#watched td.values", variable, name, REVIEWED)
        await self.window.command("View: Close Editor")

    async def mesh(self, name: str, colours: tuple[str, ...] = ("class",)) -> None:
        """Open the picture of the mesh, and take it in these colours."""
        await self.window.command("Ranks: Mesh")
        page = await self.window.webview("#mesh")
        await self.window.command("View: Toggle Panel Visibility")
        await self.point_at_nothing()
        for colour in colours:
            await page.locator("#colour").select_option(colour)
            if colour == "value":
                await page.locator("#expression").fill("loss")
                await page.locator("#expression").press("Enter")
                await page.locator(".cell.far").first.wait_for()
            await self.take(f"{name}-{colour}", EDITOR)
        await self.window.command("View: Close Editor")  # the page behind it is there again
        await self.window.command("View: Toggle Panel Visibility")

    async def _page(self, menu: str, part: str, variable: str, name: str, folder: Path) -> None:
        """Open a page of a variable, and take it without the panel below."""
        row = self.window.page.locator(
            f'{VARIABLES} .monaco-list-row[aria-label^="{variable}, value"]'
        )
        await self.window.context_menu(row, menu)
        await self.window.webview(part)
        await self.window.command("View: Toggle Panel Visibility")
        await self.point_at_nothing()
        await self.take(name, EDITOR, folder)
        await self.window.command("View: Toggle Panel Visibility")

    async def picker(self, title: str, name: str, typed: str = "", ready: str = "") -> None:
        """Run a command that asks, type, wait until a row or message reads so, take it, leave."""
        await self.window.command(title)
        await self.asked(name, typed, ready)
        await self.close_picker()

    async def asked(self, name: str, typed: str = "", ready: str = "") -> None:
        """Type into what is open, wait until a part of it reads so, and take it."""
        box = self.window.page.locator(PICKER)
        await box.wait_for()
        if typed:
            await box.locator("input").first.fill(typed)
        if ready:
            await box.get_by_text(ready).first.wait_for()
        await self.take(name, PICKER)

    async def close_picker(self) -> None:
        await self.window.page.keyboard.press("Escape")
        await self.window.page.locator(PICKER).wait_for(state="hidden")
