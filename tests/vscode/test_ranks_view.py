"""The Ranks view and casting by hand, in a real VS Code with four real ranks."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pytest
from playwright.async_api import Position
from playwright.async_api import TimeoutError as Late

from dap_mux.client import DapClient
from tests.support.processes.commands import Command, User, bodies
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.scene import REDUCE, OpenWindow, stopped
from tests.vscode.workbench import RANKS, Row, Window

pytestmark = [
    pytest.mark.alone,
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="session"),
]
OUTPUT: Final = ".output-view .view-lines"
HERE: Final = f"data_parallel.py:{REDUCE} in train"
STOOD: Final = (  # the others at their next stop, and who has stepped behind the collective
    f"3 ranks stopped at {HERE}: 0-2",
    f"1 rank stopped at data_parallel.py:{REDUCE + 1} in train: 3",
)
SOON: Final = 2000  # ms
ON_THE_NAME: Final[Position] = {"x": 60, "y": 10}  # the buttons are beside it
SWALLOWED: Final = 10.0  # s without an effect: the click was lost


@pytest.mark.parametrize("type", ["dap-mux", "debugpy"])
async def test_ranks_are_driven_searched_and_named(
    user: User, both_server: CodeServer, open_window: OpenWindow, type: str
) -> None:
    """By the rows' own buttons, whether the session tells of its ranks or is asked for them."""
    window, run = await stopped(user, both_server, open_window, type)
    observer = await _observer(run)
    await window.see_ranks()
    await window.stand(f"4 ranks stopped at {HERE}: 0-3")

    await _press(window, observer, "rank 3, stopped", "Step Over")
    await _press(window, observer, "rank 0, stopped", "Continue")
    await window.stand(f"2 ranks stopped at {HERE}: 1-2", "2 ranks running: 0,3")
    await window.shows("running", "paused", "paused", "running")
    await _press(window, observer, "2 ranks stopped", "Continue")
    await window.stand(*STOOD)

    await _name(window)
    await _cast(window, "@even", "p step", "cast @even p step", "0,2  1")
    await _search(window)


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


async def test_the_view_is_open_and_its_rows_have_every_button(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    window, _ = await stopped(user, own_server, open_window, "dap-mux")
    await window.page.set_viewport_size({"width": 1900, "height": 1300})
    row = window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank 3, stopped"]').first
    await row.wait_for(timeout=LIMIT * 1000)  # nobody has opened the view, or a row of it
    await row.hover()
    for button in ("Continue", "Step Over", "Step Into", "Step Out"):
        await row.locator(f'.action-label[aria-label^="{button}"]').wait_for()
    await row.click(button="right", position=ON_THE_NAME)
    menu = window.page.locator(".monaco-menu .action-item")
    for item in ("Compare Across Ranks", "Release Ranks"):
        await menu.filter(has_text=item).first.wait_for()


def _counts(headers: list[str]) -> bool:
    return any("4 ranks · 4 stopped" in header for header in headers)


async def _observer(run: Command) -> DapClient:
    """A client that is told of every move of the ranks."""
    client = await run.client("observer")
    await client.request("initialize", {"adapterID": "dap-mux"}, timeout=LIMIT)
    await client.request("attach", {"role": "observer", "events": ["ranks"]}, timeout=LIMIT)
    return client


async def _press(window: Window, observer: DapClient, label: str, button: str) -> None:
    """Press a row's own button until ranks move: a row that is drawn anew swallows the click.

    What the window shows is too late to tell: ranks that were let go may be back at their line.
    """
    row = window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="{label}"]')
    await row.first.wait_for()
    seen = len(bodies(observer, "ranks"))

    def moved() -> bool:
        changed = [rank for body in bodies(observer, "ranks")[seen:] for rank in body["changed"]]
        return any(rank["state"] == "running" for rank in changed)

    while not moved():
        with suppress(Late, TimeoutError):
            await row.hover(timeout=SOON)
            await row.locator(f'.action-label[aria-label^="{button}"]').click(timeout=SOON)
            await observer.wait_for(moved, timeout=SWALLOWED)


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
