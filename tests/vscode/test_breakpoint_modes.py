"""Breakpoints at which ranks wait for each other or are compared, from VS Code's own drop-down."""

from __future__ import annotations

from typing import Final

import pytest

from dap_mux.client import DapClient
from tests.support.processes.commands import LIMIT, User, line_of, listed
from tests.support.processes.run_command import start
from tests.vscode.breakpoint_modes import edit
from tests.vscode.code_server import CodeServer
from tests.vscode.row_buttons import observer_of
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration
from tests.vscode.workbench import VARIABLES, Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
# A barrier that was set while ranks run lets them pass after a second, at first: they come again.
TRAIN: Final = """\
import os
import time
from pathlib import Path

rank = int(os.environ["RANK"])


def meet(name):
    while not Path(name).exists():
        time.sleep(0.01)


def train(step):
    if rank == 3:
        meet(f"go-{step}")
    over = False
    while not over:
        loss = 2 * step + (rank == 2 and step == 2)
        over = Path(f"go-{step}").exists()  # here


meet("begin")
for step in range(4):
    train(step)
meet("end")
"""
ALL_STOPPED: Final = ["stopped"] * 4


async def test_modes_are_offered_and_do_what_they_say(
    user: User, stock_server: CodeServer, open_window: OpenWindow
) -> None:
    """All together in step 0, where ranks differ up to step 2, and each by itself in step 3."""
    path = user.script(TRAIN)
    here = line_of(path, "here")
    run = await start(user, "train.py", n=4)
    name = configuration(user, (await run.session())["port"], type="debugpy")
    window = await open_window(stock_server)
    await window.open_file("train.py", here)
    await window.start(name)
    observer = await observer_of(run)
    await listed(observer, "state", *["running"] * 4)

    await window.open_file("train.py", here)
    offered = await edit(window, "all together")
    assert offered[-3:] == ["each rank", "all together", "when ranks differ"]
    await _is_set(window, observer, None)
    (user.folder / "begin").touch()
    await listed(observer, "reason", *["barrier 3/4"] * 3, None, within=2 * LIMIT)
    waiting = {f"rank {rank} · barrier 3/4": "running" for rank in range(3)}
    shown = {**waiting, "rank 3": "running"}
    await window.becomes(window.threads, shown.__eq__, "three ranks wait for the fourth")
    (user.folder / "go-0").touch()
    await _all_are_shown(window, here)
    await window.has(VARIABLES, "step = 0", inside=["Scope Locals"])

    await window.open_file("train.py", here)
    await edit(window, "when ranks differ", "loss")
    await _is_set(window, observer, "loss")
    for step in (1, 2):
        (user.folder / f"go-{step}").touch()
    await window.control("continue")
    await window.has(VARIABLES, "step = 2", inside=["Scope Locals"])
    await listed(observer, "state", *ALL_STOPPED)
    await _all_are_shown(window, here)

    await window.open_file("train.py", here)
    await edit(window, "each rank")
    await _is_set(window, observer, None)
    await window.control("continue")
    await window.shows("paused", "paused", "paused", "running")
    await window.has(VARIABLES, "step = 3", inside=["Scope Locals"])
    (user.folder / "go-3").touch()
    await listed(observer, "state", *ALL_STOPPED)
    await observer.disconnect()


async def _all_are_shown(window: Window, line: int) -> None:
    """Wait until VS Code is through with the stop of all: it has the focus until then."""
    await window.shows("paused", "paused", "paused", "paused")
    await window.stands_at(line)


async def _is_set(window: Window, observer: DapClient, condition: str | None) -> None:
    """Wait until every rank has the breakpoint so."""

    async def told() -> list[tuple[object, object]]:
        body = await observer.request("breakpoints", {})
        return [(each["condition"] or None, each["verified"]) for each in body["breakpoints"]]

    await window.becomes(told, [(condition, True)].__eq__, f"the condition {condition}")
    answers = await observer.request("cast", {"ranks": "all", "command": "p 6 * 7"})
    assert [each["ranks"] for each in answers["results"]] == ["0-3"], "each answers in order"
