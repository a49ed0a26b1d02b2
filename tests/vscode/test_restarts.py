"""Restart is pressed in the middle of a session, or VS Code itself starts anew."""

from __future__ import annotations

import pytest

from tests.real.driving import joined, observing
from tests.support.processes.commands import Command, User, listed
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, REDUCE, OpenWindow, stopped
from tests.vscode.workbench import Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
FOUR_STOPPED = ["stopped"] * 4


async def test_the_job_is_unharmed_and_a_new_attach_shows_where_it_is(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """Somebody else's client keeps the ranks where they stand, meanwhile."""
    window, run = await stopped(user, own_server, open_window, "dap-mux")
    other = await joined(run)
    before = [one["pid"] for one in await listed(other, "state", *FOUR_STOPPED)]

    own_server.restart_extensions()  # as a crash: VS Code in a browser has no command for it
    await window.page.locator(".debug-toolbar").wait_for(state="hidden")
    await window.extension()  # while nobody does, VS Code says that it cannot debug this
    await _attach_again(window)
    await window.page.reload()
    await window.loaded()
    await _attach_again(window)

    after = [one["pid"] for one in await listed(other, "state", *FOUR_STOPPED)]
    assert after == before
    await window.leave()
    await other.disconnect()
    assert (await run.ends()).code == 0


@pytest.mark.rest
async def test_restart_attaches_again_and_the_job_keeps_what_it_is_doing(
    user: User, stock_server: CodeServer, open_window: OpenWindow
) -> None:
    """A click beside Continue ends no job that was started in a terminal."""
    window, run = await stopped(user, stock_server, open_window, "debugpy")
    before = await _processes_and_places(run)
    await window.watch_stop_line()
    await window.control("restart")
    await window.becomes(window.stop_lines, bool, "the line is highlighted anew")
    await window.shows("paused", "paused", "paused", "paused")
    await window.stands_at(REDUCE)
    assert await _processes_and_places(run) == before
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.control("continue")
    await window.shows("running", "running", "running", "running")
    await window.leave()
    assert (await run.ends()).code == 0


async def _processes_and_places(run: Command) -> list[tuple[int, str, int]]:
    client = await observing(run, "onlooker")
    rows = await listed(client, "state", *FOUR_STOPPED)
    await client.disconnect()
    return [(row["pid"], row["function"], row["line"]) for row in rows]


async def _attach_again(window: Window) -> None:
    await window.start("Remote Attach to Cluster")
    await window.shows("paused", "paused", "paused", "paused")
    await window.stands_at(REDUCE)
