"""The Compare view by hand, in a real VS Code with four real ranks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Frame

from tests.support.combinations import rest
from tests.support.processes.commands import User
from tests.support.processes.waiting import until
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, stand, stopped
from tests.vscode.workbench import VARIABLES, Row, Window

pytestmark = IN_A_WINDOW
EARLIER: Final = "These values are from an earlier stop: ranks 0-3 have run on since."
ENDED: Final = "These values are from a session that has ended. No session is running now."
REFUSED: Final = "These values are from the comparison before: loss in all ranks."
RELOADED: Final = "These values are from before the window was reloaded. No session is running now."


async def test_expressions_are_followed_and_the_outlier_is_gone_to_named_and_exported(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """A page of expressions is evaluated at each stop, and is there again after a reload."""
    window, run = await stopped(user, own_server, open_window, "dap-mux", "step >= 4")
    await window.variable_menu("loss", "Parallel Watch")
    page = await window.webview("#watched")
    await window.becomes(lambda: _watched(page), lambda rows: len(rows) == 1, "one expression")
    await page.locator("#expression").fill("step")
    await page.locator("#expression").press("Enter")
    await window.becomes(lambda: _watched(page), lambda rows: "{all (4)} 4" in str(rows), "step")
    assert "⚠" not in str(await _watched(page))

    await window.control("continue")
    await stand(run, "stopped", "stopped", "stopped", "stopped")
    await window.becomes(lambda: _watched(page), lambda rows: "⚠ {2} 340268" in str(rows), "odd")
    charts = page.locator('svg[aria-label^="Values at the last 2 stops"]')
    await window.becomes(charts.count, lambda seen: seen == 2, "the last stops of both")
    assert await page.locator(".changed").count() == 2
    assert await page.locator('svg[aria-label*="outliers 2: 340268"]').count() == 1
    assert await page.locator("th[scope=row]").all_inner_texts() == ["loss", "step"]
    await _the_outlier_in_compare(user, window)

    await window.command("Ranks: Parallel Watch")
    page = await window.webview("#watched")
    outlier = page.locator(".far .go")
    await outlier.focus()
    await outlier.press("Enter")
    await window.becomes(lambda: window.rows(VARIABLES), _is_rank_2, "the variables of rank 2")
    await window.becomes(
        page.locator("thead").inner_text, lambda head: "Rank 2" in head, "the page has gone, too"
    )
    await page.locator("#export").click()
    table = user.folder / "parallel-watch.csv"
    await _save(window, "Export the values of all ranks", table)
    await until(lambda: len(_lines(table)) == 9, within=LIMIT, what="a head and two times four")

    await window.leave()
    async with window.page.expect_navigation():
        await window.command("Developer: Reload Window")
    await window.loaded()
    page = await window.webview("#watched")
    names = page.locator("th[scope=row]").all_inner_texts
    await window.becomes(names, lambda seen: seen == ["loss", "step"], "the same expressions")


async def _the_outlier_in_compare(user: User, window: Window) -> None:
    """Its row is the first, and its link is for the mouse as for the keyboard."""
    await window.becomes(lambda: _locals(window), _is_marked, "loss differs in rank 2")
    await window.page.locator(".view-line", has_text="loss ≠ {2} 340268").first.wait_for()
    page = await compare_loss(window)
    assert await page.locator("#summary").inner_text() == "4 ranks · 4 different values · 1 outlier"
    wrong = await page.locator("#groups tbody tr").first.inner_text()
    assert "340268" in wrong  # its distances are in millimetres
    assert wrong.split()[:2] == ["⚠", "{2}"]
    assert wrong.split()[-1] == "outlier"
    links = page.locator("#groups .go")
    sets = await links.all_inner_texts()
    assert sets[0] == "⚠ {2}"
    assert sorted(sets[1:]) == ["{0}", "{1}", "{3}"]

    assert await links.first.get_attribute("title") == "Go to rank 2"
    await links.first.click()
    await window.becomes(lambda: window.rows(VARIABLES), _is_rank_2, "the variables of rank 2")
    await links.first.focus()
    await window.page.keyboard.press("ArrowDown")
    await window.page.keyboard.press("Enter")
    await window.becomes(lambda: window.rows(VARIABLES), _is_another, "those of another rank")

    await page.locator("#group").click()
    await window.answer("Name for rank 2", "wrong")
    await window.told("@wrong now means rank 2.")
    await page.locator("#export").click()
    table = user.folder / "compare-loss.csv"
    await _save(window, "Export the values of all ranks", table)
    await until(lambda: len(_lines(table)) == 5, within=LIMIT, what="a head and four ranks")
    lines = _lines(table)
    assert [line.split(",")[1] for line in lines] == ["rank", "0", "1", "2", "3"]
    assert [line.rpartition(",")[2] for line in lines] == ["note", "", "", "outlier", ""]

    await page.locator("#ranks").fill("ranks(tp=0)")
    await page.locator("#ranks").press("Enter")
    await window.becomes(lambda: _age(page), REFUSED.__eq__, "said to be of another comparison")
    await page.locator("#again").click()
    await window.becomes(lambda: _age(page), "".__eq__, "of now again")


@pytest.mark.heavy
@pytest.mark.parametrize("type", ["dap-mux", rest("debugpy")])
async def test_values_that_are_not_of_now_are_said_to_be_old(
    user: User, both_server: CodeServer, open_window: OpenWindow, type: str
) -> None:
    """After the next stop at the same line, after the session, and after a reload of the window."""
    window, run = await stopped(user, both_server, open_window, type)
    page = await compare_loss(window)
    first = await _table(page)
    row = page.locator("#groups tbody tr", has_text="{3}")
    loss = await row.locator(".value").inner_text()
    await row.locator(".go").click()
    await window.becomes(
        lambda: window.rows(VARIABLES),
        lambda rows: any(re.match(rf"loss = {loss[:6]}\d* [▁-█]{{4}}", row.text) for row in rows),
        "the loss of rank 3, and a bar for each rank",
    )
    assert await _age(page) == "", "who is looked at has not moved"

    await window.control("continue")
    await window.becomes(lambda: _age(page), EARLIER.__eq__, "said to be old")
    assert await _table(page) == first
    assert await _opacity(page) < 1
    await stand(run, "stopped", "stopped", "stopped", "stopped")
    await page.locator("#again").click()
    await window.becomes(lambda: _age(page), "".__eq__, "of now again")
    assert await _table(page) != first
    assert await _opacity(page) == 1

    await window.leave()
    await window.becomes(lambda: _age(page), ENDED.__eq__, "said to be of no session")
    assert await page.locator("#again").is_disabled()
    assert await page.locator("#groups .go").first.is_disabled()

    async with window.page.expect_navigation():
        await window.command("Developer: Reload Window")
    await window.loaded()
    page = await window.webview("#groups")
    await window.becomes(lambda: _age(page), RELOADED.__eq__, "said to be of an earlier window")


async def _watched(page: Frame) -> list[str]:
    """Return what the page says of the values of each expression."""
    cells = await page.locator("#watched tbody tr .values").all_inner_texts()
    return [" ".join(cell.split()) for cell in cells]


async def _locals(window: Window) -> list[Row]:
    await window.expand(VARIABLES, "Scope Locals")
    return await window.rows(VARIABLES)


def _is_marked(rows: list[Row]) -> bool:
    return any(re.fullmatch(r"loss = 0\.[0-9]{1,7} [▁-█]{4} \{2\}", row.text) for row in rows)


async def compare_loss(window: Window) -> Frame:
    """The page that the context menu of a variable opens."""
    await window.variable_menu("loss", "Compare Across Ranks")
    return await window.webview("#groups")


async def _age(page: Frame) -> str:
    """Return what the page says about the age of its values; nothing while they are current."""
    return (await page.locator("#words").inner_text()).strip()


async def _table(page: Frame) -> list[str]:
    return await page.locator("#groups td.value").all_inner_texts()


async def _opacity(page: Frame) -> float:
    shown: str = await page.locator("#result").evaluate("e => getComputedStyle(e).opacity")
    return float(shown)


def _is_rank_2(rows: list[Row]) -> bool:
    return any(row.text.startswith("loss = 340268") for row in rows)


def _is_another(rows: list[Row]) -> bool:
    return any(row.text.startswith("loss = 0.") for row in rows)


def _lines(table: Path) -> list[str]:
    """Return the lines of a file, none if it does not exist yet."""
    return table.read_text("utf-8").splitlines() if table.exists() else []


async def _save(window: Window, title: str, file: Path) -> None:
    """Take the file that is offered; it is only after its folder has been read."""
    await window.page.locator(".quick-input-title", has_text=title).wait_for()
    box = window.page.locator(".quick-input-widget input").first
    await window.becomes(box.input_value, lambda seen: seen == str(file), f"{file} is offered")
    await box.press("Enter")
