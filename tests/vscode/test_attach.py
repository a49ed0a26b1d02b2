"""Four real ranks in a real VS Code, by "Remote Attach to Cluster": what a user sees and does.

Type `debugpy` is a VS Code that knows nothing of us; type `dap-mux` one that has our package and
nothing else.
"""

from __future__ import annotations

import signal
from typing import Final

import pytest

from tests.real.driving import observing
from tests.support.processes.commands import User, listed
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, REDUCE, OpenWindow, stand, stopped
from tests.vscode.workbench import CALL_STACK, CONSOLE, VARIABLES, Window

pytestmark = IN_A_WINDOW
Kind = tuple[str, CodeServer]
LOSSES: Final = "{0}: 3.25288… | {1}: 2.65551… | {2}: 3.37324… | {3}: 2.55322…"


@pytest.fixture(params=[pytest.param("debugpy", marks=pytest.mark.heavy), "dap-mux"])
def kind(request: pytest.FixtureRequest) -> Kind:
    """A debugger type, and the VS Code that has it."""
    server = {"debugpy": "stock_server", "dap-mux": "own_server"}[request.param]
    return request.param, request.getfixturevalue(server)


async def test_a_job_is_looked_at_stepped_and_left_alone(
    user: User, kind: Kind, open_window: OpenWindow
) -> None:
    undisturbed = await start(user, "--no-wait", "--log-dir", "undisturbed", EXAMPLE, n=4)
    window, run = await stopped(user, kind[1], open_window, kind[0])
    await _look(window)
    await _ask_all(window)

    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.conditional_breakpoint(EXAMPLE, REDUCE, "ranks(1,3): step == 2")
    await window.control("continue")
    await stand(run, "running", "stopped", "running", "stopped")
    await window.shows("running", "paused", "running", "paused")
    await window.stands_at(REDUCE)
    await _step(window)

    await window.leave()
    ended, other = await run.ends(), await undisturbed.ends()
    assert ended.code == 0, ended.err
    assert sorted(ended.out.splitlines()) == sorted(other.out.splitlines())


@pytest.mark.heavy
async def test_a_rank_that_is_killed_disappears(
    user: User, stock_server: CodeServer, open_window: OpenWindow
) -> None:
    """Without our package; what that shows of a death is in `test_deaths`."""
    window, run = await stopped(user, stock_server, open_window, "debugpy")
    client = await observing(run)
    pid = (await listed(client, "state", *["stopped"] * 4))[3]["pid"]
    user.signal(pid, signal.SIGKILL)
    await window.shows("paused", "paused", "paused")
    await window.stands_at(REDUCE)


async def _look(window: Window) -> None:
    """Frames of the focus, its variables, and one of them expanded."""
    await window.has(CALL_STACK, f"Stack Frame train, line {REDUCE}, data_parallel.py")
    inside = "Scope Locals", "model, value"
    await window.has(VARIABLES, "step = 0", "slope = 0.0", "offset = 0.0", inside=inside)


async def _ask_all(window: Window) -> None:
    """Answers that differ stand beside each other, equal ones are one."""
    await window.console("cast ranks(0:4) p loss")
    await window.has(CONSOLE, LOSSES)
    await window.console("cast ranks(0:4) p step")
    await window.has(CONSOLE, "{0-3}: 0")


async def _step(window: Window) -> None:
    """F10 steps the class over the collective, and the highlighted line moves once."""
    await window.watch_stop_line()
    await window.page.keyboard.press("F10")
    await window.stands_at(REDUCE + 1)
    await window.shows("running", "paused", "running", "paused")
    await window.scroll_to(VARIABLES, "step = 2")  # what is unfolded above moves it out of sight
    assert await window.stop_lines() == [REDUCE + 1]
