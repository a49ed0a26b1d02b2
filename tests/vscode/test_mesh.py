"""The picture of the mesh in a real VS Code: colours, and a rectangle as a rank set.

Its arrows are in `test_why`, of a job in which ranks wait for one.
"""

from __future__ import annotations

from typing import Final

from playwright.async_api import Frame

from tests.support.processes.commands import User
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.keyboard import PICKER, Keyboard
from tests.vscode.scene import (
    EXAMPLE,
    IN_A_WINDOW,
    REDUCE,
    OpenWindow,
    configuration,
    stand,
)
from tests.vscode.workbench import VARIABLES, Row, Window

pytestmark = IN_A_WINDOW
MESH: Final = ("--mesh", "dp=2,tp=2")


async def test_a_rectangle_is_a_rank_set_by_mouse_and_by_keys(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    window = await _stopped(user, own_server, open_window)
    await window.command("Ranks: Mesh")
    page = await window.webview("#mesh")
    heads = await page.locator("#mesh th").all_inner_texts()
    assert heads == ["0", "1", "dp=0", "dp=1"]
    label = f"rank 2, stopped, data_parallel.py:{REDUCE}"
    assert await page.locator("td[data-rank='2']").get_attribute("aria-label") == label

    await _drag(window, page, 2, 3)
    await _selected(window, page, "2 ranks selected: 2-3")
    await page.locator("[data-action=scope]").click()
    await window.page.locator(".statusbar-item", has_text="F10 → 2-3").wait_for()

    await page.locator("#colour").select_option("value")
    await page.locator("#expression").fill("loss")
    await page.locator("#expression").press("Enter")
    far = page.locator("#mesh .far")
    await far.wait_for()
    assert "outlier, 340268" in (await far.get_attribute("aria-label") or "")
    assert await page.locator("#mesh [class*=level]").count() == 3

    await _by_keys(Keyboard(window), page)
    await window.leave()


async def _by_keys(keys: Keyboard, page: Frame) -> None:
    """Name a rectangle, go to a rank, and cast to all."""
    window = keys.window
    await keys.put_mouse_away()
    await keys.tab_in_page(page, "#mesh td")
    await keys.press("Home")
    await keys.press("Shift+ArrowUp")
    await _selected(window, page, "2 ranks selected: 0,2")
    await keys.tab_in_page(page, "[data-action=name]", "Shift+Tab")
    await keys.press("Enter")
    await keys.answer("Name for ranks 0,2", "first")
    await window.told("@first now means ranks 0,2.")
    await keys.tab_in_page(page, "#mesh td")
    await keys.press("ArrowDown")
    await keys.press("Enter")
    await window.becomes(lambda: window.rows(VARIABLES), _is_rank_2, "the variables of rank 2")
    await keys.command("Ranks: Mesh")
    await keys.tab_in_page(page, "#mesh td")
    await keys.press("Control+Home")
    await keys.press("Control+Shift+End")
    await _selected(window, page, "4 ranks selected: 0-3")
    await keys.tab_in_page(page, "[data-action=cast]", "Shift+Tab")
    await keys.press("Enter")
    await keys.escape("Cast to 0-3 (2/2): which command?", PICKER)
    assert await keys.mouse_presses() == 0


async def _stopped(user: User, server: CodeServer, open_window: OpenWindow) -> Window:
    """Four ranks in a mesh, at the step at which rank 2 is wrong."""
    run = await start(user, *MESH, EXAMPLE, n=4)
    name = configuration(user, (await run.session())["port"], type="dap-mux")
    window = await open_window(server)
    await window.conditional_breakpoint(EXAMPLE, REDUCE, "step == 5")
    await window.start(name)
    await stand(run, "stopped", "stopped", "stopped", "stopped")
    await window.stands_at(REDUCE)
    return window


async def _drag(window: Window, page: Frame, first: int, last: int) -> None:
    """Press on one rank, and let go on another."""
    places = [
        await page.locator(f"td[data-rank='{rank}']").bounding_box() for rank in (first, last)
    ]
    mouse = window.page.mouse
    for place, press in zip(places, (mouse.down, mouse.up), strict=True):
        assert place is not None
        await mouse.move(place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
        await press()


async def _selected(window: Window, page: Frame, text: str) -> None:
    selected = page.locator("#selected").inner_text
    await window.becomes(selected, text.__eq__, text)


def _is_rank_2(rows: list[Row]) -> bool:
    return any("340268" in str(row) for row in rows)
