"""The Ranks view and casting by hand, in a real VS Code with four real ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from playwright.async_api import Position

from dap_mux.pure.rank_sets.rank_rows import Row as RankRow
from tests.support.combinations import rest
from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.row_buttons import choose, observer_of, press
from tests.vscode.scene import IN_A_WINDOW, REDUCE, OpenWindow, example_line, stopped
from tests.vscode.workbench import RANKS, Row, Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
OUTPUT: Final = ".output-view .view-lines"
CALL: Final = example_line("self._come_late()")
HERE: Final = f"data_parallel.py:{REDUCE} in train"
STOOD: Final = (  # the others at their next stop, and who has stepped behind the collective
    f"1 rank stopped at data_parallel.py:{REDUCE + 1} in train: 3",
    f"3 ranks stopped at {HERE}: 0-2",
)
ON_THE_NAME: Final[Position] = {"x": 60, "y": 10}  # the buttons are beside it


@pytest.mark.parametrize("type", [rest("dap-mux"), "debugpy"])
async def test_ranks_are_driven_searched_and_named(
    user: User, both_server: CodeServer, open_window: OpenWindow, type: str
) -> None:
    """By the rows' own buttons, whether the session tells of its ranks or is asked for them."""
    window, run = await stopped(user, both_server, open_window, type)
    observer = await observer_of(run)
    await window.see_ranks()
    await window.stand(f"4 ranks stopped at {HERE}: 0-3")

    await press(window, observer, "rank 3, stopped", "Step Over")
    await press(window, observer, "rank 0, stopped", "Continue")
    await window.stand(f"2 ranks stopped at {HERE}: 1-2", "2 ranks running: 0,3")
    await window.shows("running", "paused", "paused", "running")
    await press(window, observer, "2 ranks stopped", "Continue")
    await window.stand(*STOOD)

    await _name(window)
    await _cast(window, "@even", "p step", "cast @even p step", "0,2  1")
    await _search(window)


@pytest.mark.rest
async def test_the_activity_bar_counts_sessions_and_the_view_ranks(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """VS Code adds a view's number to its own, and two of different things make neither."""
    window, _ = await stopped(user, own_server, open_window, "dap-mux")
    await window.see_ranks()
    header = window.page.locator('.pane-header:has-text("Ranks")')
    await window.becomes(header.all_inner_texts, _counts, "the view counts")
    badge = window.page.locator('.activitybar .action-item:has([aria-label^="Run and Debug"])')
    await window.becomes(badge.locator(".badge-content").all_inner_texts, ["1"].__eq__, "1 session")


@pytest.mark.rest
async def test_a_row_steps_into_and_out_and_is_compared_and_released(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    window, run = await stopped(user, own_server, open_window, "dap-mux")
    await window.page.set_viewport_size({"width": 1900, "height": 1300})
    observer = await observer_of(run)
    await window.see_ranks()
    others = f"3 ranks stopped at {HERE}: 0-2"

    def stands_in(function: str) -> Callable[[RankRow], bool]:
        return lambda rank: rank["rank"] == 3 and rank["function"] == function

    await press(window, observer, "rank 3, stopped", "Step Into", stands_in("all_reduce_mean"))
    await window.stand(f"1 rank stopped at data_parallel.py:{CALL} in all_reduce_mean: 3", others)
    await press(window, observer, "rank 3, stopped", "Step Into", stands_in("_come_late"))
    await press(window, observer, "rank 3, stopped", "Step Out", stands_in("all_reduce_mean"))
    await window.stand(f"1 rank stopped at data_parallel.py:{CALL} in all_reduce_mean: 3", others)

    row = window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank 3, stopped"]').first
    prompt = window.page.locator(".quick-input-title", has_text="Compare across ranks")
    await choose(window, row, "Compare Across Ranks", prompt)
    await window.answer("Compare across ranks", "self.rank")
    page = await window.webview("#groups tbody tr")
    assert (await page.locator("#groups tbody tr").inner_text()).split() == ["{3}", "1", "3"]

    dialog = window.page.locator(".monaco-dialog-box", has_text="Release rank 3?")
    await choose(window, row, "Release Ranks", dialog)
    await dialog.locator(".monaco-button", has_text="Release").click()
    await window.stand(others, "1 rank running: 3")
    await window.shows("paused", "paused", "paused")


def _counts(headers: list[str]) -> bool:
    return any("4 ranks · 4 stopped" in header for header in headers)


async def _name(window: Window) -> None:
    """Ranks 0 and 2 by the context menu of a selection."""
    # By their names: rows need not be in the page's text in the order in which they are seen.
    one, other = (
        window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank {rank},"]')
        for rank in (0, 2)
    )
    await one.click(position=ON_THE_NAME)
    await other.click(modifiers=["Control"], position=ON_THE_NAME)
    await window.context_menu(other, "New Group…")
    await window.answer("Name for ranks 0,2", "even")
    await window.told("@even now means ranks 0,2.")


async def _cast(window: Window, ranks: str, command: str, *lines: str) -> None:
    """A rank set that means nobody is told while it is typed; the answer comes merged."""
    box = window.page.locator(".quick-input-widget input").first
    rows = window.page.locator(".quick-input-list .monaco-list-row")
    await window.command("Ranks: Cast to Ranks")
    await box.fill("ranks(ddp=0)")
    await rows.filter(has_text="has no mesh dimensions").first.wait_for()
    await box.fill(ranks)
    await rows.filter(has_text="2 ranks: 0,2").first.click()
    await window.page.locator(".quick-input-title", has_text="which command?").wait_for()
    await box.fill(command)
    await window.page.keyboard.press("Enter")

    async def look() -> str:
        return (await window.page.locator(OUTPUT).first.inner_text()).replace("\xa0", " ")

    await window.becomes(look, lambda seen: all(line in seen for line in lines), "the answer")


async def _search(window: Window) -> None:
    await window.command("Ranks: Search Ranks")
    await window.page.locator(".quick-input-widget input").first.fill("1-2 train")

    def found(rows: list[Row]) -> bool:
        return [row.label for row in rows][1:] == [
            f"rank {rank}, stopped, train:{REDUCE}" for rank in (1, 2)
        ]

    await window.becomes(lambda: window.rows(RANKS), found, "ranks 1 and 2")
    await window.page.keyboard.press("Escape")
    await window.stand(*STOOD)
