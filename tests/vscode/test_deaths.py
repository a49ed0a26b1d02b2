"""Ranks that die, in a real VS Code: nobody who looks at the window can overlook it."""

from __future__ import annotations

import os
import re
import signal
from typing import Final

import pytest
from playwright.async_api import Locator

from tests.real.driving import observing
from tests.support.processes.commands import LIMIT, Command, User, listed
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, REDUCE, OpenWindow, stopped
from tests.vscode.terminal import RUN, end_jobs, in_terminal, rank_processes
from tests.vscode.workbench import CONSOLE, RANKS, Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
DIED: Final = f"rank 2 died: SIGSEGV (11); last stopped at data_parallel.py:{REDUCE} in train"
RED: Final = re.compile(r"rgb\((\d+), (\d+), (\d+)\)")


async def test_a_death_is_told_in_red_and_stands_first(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    window, run = await stopped(user, own_server, open_window, "dap-mux")
    user.signal(await _pid(run, 2), signal.SIGSEGV)
    toast = window.page.locator(".notification-toast", has_text=DIED).first
    await toast.wait_for(timeout=LIMIT * 1000)
    left = {f"rank {rank}": "paused" for rank in (0, 1, 3)}
    await window.becomes(window.threads, left.__eq__, f"CALL STACK shows {left}")
    counts = window.page.locator(".statusbar-item", has_text="4 ranks · 3 stopped · 1 died")
    await counts.wait_for(timeout=LIMIT * 1000)
    await window.see_ranks()
    await window.stand(
        "1 rank died: 2", f"3 ranks stopped at data_parallel.py:{REDUCE} in train: 0-1,3"
    )
    first = window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank 2, died: SIGSEGV"]')
    await _is_red(window, first.locator(".custom-view-tree-node-item-icon"))

    await toast.get_by_text("Show Log").click()
    line = window.page.locator(f"{CONSOLE} .monaco-list-row", has_text=f"dap-mux: {DIED}").first
    await line.wait_for(timeout=LIMIT * 1000)
    await _is_red(window, line.locator(".value .error, .value.error, .error").first)


@pytest.mark.rest
async def test_a_job_in_a_terminal_is_debugged_in_its_window_and_has_its_log_there(
    own_server: CodeServer, open_window: OpenWindow
) -> None:
    window = await open_window(own_server)
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.extension()  # a terminal that is older would not know the window's socket
    await in_terminal(window, RUN)
    await window.shows("paused", "paused")
    await window.stands_at(REDUCE)
    await window.command("Debug Console: Focus on Debug Console View")
    terminal = window.page.locator(".terminal-wrapper.active").first
    await terminal.wait_for(state="hidden", timeout=LIMIT * 1000)
    os.kill(rank_processes(own_server)[0], signal.SIGSEGV)
    toast = window.page.locator(".notification-toast", has_text="died: SIGSEGV (11)").first
    await toast.get_by_text("Show Log").click(timeout=LIMIT * 1000)
    await terminal.wait_for(timeout=LIMIT * 1000)
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.leave()
    await end_jobs(window, own_server)  # the other rank is held at its exception


async def _pid(run: Command, rank: int) -> int:
    client = await observing(run, "onlooker")
    pid: int = (await listed(client, "state", *["stopped"] * 4))[rank]["pid"]
    await client.disconnect()
    return pid


async def _is_red(window: Window, what: Locator) -> None:
    """Wait until it is drawn in a colour that has far more red than green and blue."""

    async def look() -> str:
        colour: str = await what.evaluate("e => getComputedStyle(e).color")
        return colour

    def red(colour: str) -> bool:
        found = RED.match(colour)
        return found is not None and int(found[1]) > 1.5 * max(int(found[2]), int(found[3]))

    await window.becomes(look, red, "drawn in red")
