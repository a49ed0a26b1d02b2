"""The buttons of rows of the Ranks view, pressed until ranks move, and their menus."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from playwright.async_api import Locator
from playwright.async_api import TimeoutError as Late

from dap_mux.client import DapClient
from dap_mux.pure.rank_sets.rank_rows import KeptRows, Row
from tests.support.processes.commands import Command, bodies
from tests.vscode.editing import LIMIT
from tests.vscode.workbench import RANKS, Window

SOON: Final = 2000  # ms
SWALLOWED: Final = 10.0  # s without an effect: the click was lost


async def observer_of(run: Command, event: str = "ranks") -> DapClient:
    """A client that is told of every move of the ranks, or of what else there is an event for."""
    client = await run.client("observer")
    await client.request("initialize", {"adapterID": "dap-mux"}, timeout=LIMIT)
    await client.request("attach", {"role": "observer", "events": [event]}, timeout=LIMIT)
    return client


def runs(rank: Row) -> bool:
    """Whether it was seen to run, though it may be stopped again by now."""
    return bool(rank["state"] == "running")


async def press(
    window: Window,
    observer: DapClient,
    label: str,
    button: str,
    effect: Callable[[Row], bool] = runs,
) -> None:
    """Press a row's own button until a rank is so: a row that is drawn anew swallows the click.

    The window shows a move too late: a rank that ran on may be back at its line by then. A rank's
    button is seen to work by that rank alone, and a class's by ranks that were not so before:
    another, which runs, may be named anew meanwhile.
    """
    row = window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="{label}"]')
    await row.first.wait_for()
    listed = (await observer.request("list", timeout=LIMIT))["ranks"]
    seen = len(bodies(observer, "ranks"))
    one = re.match(r"rank (\d+)", label)
    before = {rank["rank"] for rank in listed if effect(rank)}

    def moved() -> bool:
        kept = KeptRows()
        kept.replace(listed)
        told = (kept.update(body["changed"]) for body in bodies(observer, "ranks")[seen:])
        changed = [rank for changes in told for _, rank in changes]
        numbers = {rank["rank"] for rank in changed if effect(rank)} - before
        return bool(numbers if one is None else numbers & {int(one[1])})

    while not moved():
        with suppress(Late, TimeoutError):
            await row.hover(timeout=SOON)
            await row.locator(f'.action-label[aria-label^="{button}"]').click(timeout=SOON)
            await observer.wait_for(moved, timeout=SWALLOWED)


async def choose(window: Window, row: Locator, item: str, wanted: Locator) -> None:
    """Choose an item of a row's menu; once more if VS Code says that the row has just changed."""
    changed = window.page.locator(".notification-toast", has_text="This row has just changed.")
    await window.context_menu(row, item, wanted.or_(changed))
    await wanted.or_(changed).first.wait_for()
    if await changed.count():
        await window.context_menu(row, item, wanted)
        await wanted.wait_for()
