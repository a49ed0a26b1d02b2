"""One rank of a job that has ended, replayed in a real VS Code: F5, a breakpoint, and back."""

from __future__ import annotations

from typing import Final

import pytest

from tests.launchers.launching import line
from tests.launchers.test_replay import SCRIPT, took
from tests.launchers.test_replay_at import ADDS, BACKWARD, STEPS
from tests.launchers.test_replay_ends import failed
from tests.replay_score.rounds import FILE
from tests.replay_score.rows import FAILURES, Failure
from tests.support.processes.commands import User
from tests.support.reports.sample import sample
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration, launch_json
from tests.vscode.workbench import CALL_STACK, VARIABLES, Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
LOCALS: Final = "Scope Locals"
FAILS: Final = line(SCRIPT, "raise ValueError")


async def test_a_launch_replays_a_rank_and_goes_back_or_opens_a_report(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """It needs no launcher, and no program but what the file names."""
    await took(user, "fail")
    (user.folder / "report.dapmux").write_bytes(sample())
    file, report = "${workspaceFolder}/r2.rank", "${workspaceFolder}/report.dapmux"
    launch_json(
        user,
        {"name": "Replay", "request": "launch", "replay": file, "replayAt": 3},
        {"name": "Report", "request": "launch", "report": report},
    )
    window = await open_window(own_server)
    await window.toggle_breakpoint("train.py", ADDS)
    await window.start("Replay")
    await window.stands_at(STEPS)
    await window.has(CALL_STACK, f"Stack Frame main, line {STEPS}, train.py")
    await window.has(VARIABLES, "number = 5", inside=[LOCALS])
    await window.control("step-back")
    await window.stands_at(BACKWARD)
    await window.control("continue")
    await window.stands_at(ADDS)
    await window.has(VARIABLES, "number = 5", inside=[LOCALS])
    await window.control("continue")
    await window.stands_at(FAILS)
    await window.leave()
    await _opens_a_report(window)


async def _opens_a_report(window: Window) -> None:
    """The window starts what shows it, and that ends with the session."""
    await window.start("Report")
    await window.stands_at(7)
    await window.control("step-back")
    await window.shows("paused", "paused", "paused", "running")
    await window.stands_at(6)
    await window.leave()


@pytest.mark.rest
@pytest.mark.parametrize("failure", FAILURES, ids=[failure.way for failure in FAILURES])
async def test_a_rank_ends_there_as_it_did(
    user: User, stock_server: CodeServer, open_window: OpenWindow, failure: Failure
) -> None:
    """With the stock type, which attaches to the replay; ours is above."""
    place, _, at = await failed(user, failure)
    run = await place.start("replay", FILE)
    name = configuration(user, (await run.session())["port"], type="debugpy")
    window = await open_window(stock_server)
    await window.start(name)
    await window.stands_at(at)
    await window.has(CALL_STACK, f"Stack Frame main, line {at}, fails.py")
    await window.has(VARIABLES, "step = 37", inside=[LOCALS])
    await window.shows_exception(failure.says.rpartition("Error: ")[2])
    await window.leave()
    run.process.terminate()
    await run.ends()
