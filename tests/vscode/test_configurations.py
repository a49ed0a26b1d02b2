"""The extension's own ways to start, in a VS Code that has our package and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from dap_mux.system import procfs
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, OpenWindow, example_line
from tests.vscode.terminal import RUN, in_terminal, rank_processes, run_to_their_end
from tests.vscode.workbench import Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
REDUCE: Final = example_line("a good line for a breakpoint")


async def test_f5_without_launch_json_starts_four_ranks_restart_others_and_stop_ends_them(
    own_server: CodeServer, open_window: OpenWindow
) -> None:
    window = await open_window(own_server)
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.page.keyboard.press("F5")
    await _take(window, "Launch 4 ranks of this file")
    await window.command("View: Show Run and Debug")
    await window.stands_at(REDUCE)
    all_stopped = window.page.locator(".statusbar-item", has_text="4 ranks · 4 stopped")
    await all_stopped.first.wait_for(timeout=LIMIT * 1000)
    first = rank_processes(own_server)
    assert len(first) == 4
    await window.control("restart")
    await window.becomes(_other_ranks(own_server, first), bool, "four other ranks")
    await all_stopped.first.wait_for(timeout=LIMIT * 1000)
    await window.stands_at(REDUCE)
    await window.leave()
    await run_to_their_end(window, own_server)


@pytest.mark.rest
async def test_a_session_that_runs_is_found(
    quiet: None, own_server: CodeServer, open_window: OpenWindow
) -> None:
    window = await open_window(own_server)
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    # Where two run, VS Code asks which.
    await window.becomes(_sessions(own_server), lambda seen: not seen, "no other session runs")
    await in_terminal(window, RUN)
    await window.becomes(_sessions(own_server), bool, "a session runs")
    assert await window.page.locator(".debug-toolbar").is_hidden()
    await window.command("dap-mux: Attach to a Running Session")
    await window.command("View: Show Run and Debug")
    await window.shows("paused", "paused")
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.leave()
    await run_to_their_end(window, own_server)


async def _take(window: Window, offer: str) -> None:
    """Choose one row of the list that has opened by itself."""
    row = window.page.locator(".quick-input-list .monaco-list-row", has_text=offer)
    await row.first.click(timeout=LIMIT * 1000)


def _other_ranks(server: CodeServer, than: list[int]) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        found = rank_processes(server)
        return len(found) == len(than) and not set(found) & set(than)

    return look


def _sessions(server: CodeServer) -> Callable[[], Awaitable[set[Path]]]:
    """The files of sessions that run; those of earlier tests may be there still."""

    async def look() -> set[Path]:
        files = (server.folder / "runtime" / "dap-mux").glob("[0-9]*.json")
        return {file for file in files if procfs.folder(int(file.stem)).exists()}

    return look
