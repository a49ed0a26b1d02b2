"""VS Code itself starts anew in the middle of a session."""

from __future__ import annotations

import pytest

from tests.support.processes.commands import LIMIT, User, listed
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import REDUCE, OpenWindow, stopped
from tests.vscode.workbench import Window

pytestmark = [
    pytest.mark.alone,
    pytest.mark.real,
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="session"),
]
FOUR_STOPPED = ["stopped"] * 4


async def test_the_job_is_unharmed_and_a_new_attach_shows_where_it_is(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """Somebody else's client keeps the ranks where they stand, meanwhile."""
    window, run = await stopped(user, own_server, open_window, "dap-mux")
    other = await run.client()
    await other.handshake({"justMyCode": True}, timeout=LIMIT)
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


async def _attach_again(window: Window) -> None:
    await window.start("Remote Attach to Cluster")
    await window.shows("paused", "paused", "paused", "paused")
    await window.stands_at(REDUCE)
