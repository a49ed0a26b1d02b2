"""A report in a real VS Code: the stock type `debugpy`, sources nowhere on disk, steps back.

A launch configuration that opens one is in `test_replay`.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.processes.commands import User
from tests.support.reports.sample import sample
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration
from tests.vscode.workbench import CALL_STACK, CONSOLE, VARIABLES

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
LOCALS: Final = "Scope Locals"


async def test_a_report_is_walked_through(
    user: User, stock_server: CodeServer, open_window: OpenWindow
) -> None:
    """Three ranks stand where one of them has failed; the fourth has ended, and lives before."""
    (user.folder / "report.dapmux").write_bytes(sample())
    opened = await user.start("open", "report.dapmux")
    name = configuration(user, (await opened.session())["port"], type="debugpy")
    window = await open_window(stock_server)
    await window.start(name)
    await window.stands_at(7)
    await window.has(CALL_STACK, "Stack Frame step, line 7, train.py")
    await window.has(CALL_STACK, "Thread rank 0 loss is nan")
    paused = {"rank 1": "paused", "rank 2": "paused"}
    await window.becomes(window.threads, paused.__eq__, "two more ranks, and none that has ended")
    await window.has(VARIABLES, "n = 2", inside=[LOCALS])
    await window.console("cast 0-2 p loss")
    await window.has(CONSOLE, "⚠ {0}: nan | {1-2}: 1.0")

    await window.control("step-back")
    await window.shows("paused", "paused", "paused", "running")
    await window.stands_at(6)
    await window.control("reverse-continue")
    await window.shows("paused", "paused", "paused", "paused")
    await window.stands_at(5)
    await window.control("continue")
    await window.shows("paused", "paused", "paused", "running")
    await window.stands_at(6)
    await window.leave()
    assert opened.process.returncode is None
