"""The line of a wrong number in VS Code: *Diverged*, with Compare, and what is not finite."""

from __future__ import annotations

import shutil

import pytest

from tests.launchers.launching import launch, line
from tests.launchers.test_diverge_live import SCRIPT, STEP
from tests.launchers.test_not_finite import BACKWARD, BUG
from tests.launchers.test_not_finite import SCRIPT as NOT_FINITE
from tests.launchers.tools import environment
from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration, stand
from tests.vscode.scripts import MARKS

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]


async def test_the_line_is_marked_and_compare_opens_where_replicas_part(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    program, parts = user.folder / "train.py", user.folder / "parts"
    shutil.copy(SCRIPT, program)
    torchrun = ["torchrun", "--standalone", "--nproc-per-node", "2", str(program)]
    words = ["run", "--no-wait", "--", *torchrun]
    run = await launch(user, environment("torch"), words, OMP_NUM_THREADS="1", PART=str(parts))
    name = configuration(user, (await run.session())["port"], type="dap-mux")
    window = await open_window(own_server)
    await window.start(name)
    await window.shows("running", "running")
    await window.command("Focus on Breakpoints View")
    row = window.page.locator(".debug-breakpoints .monaco-list-row", has_text="Diverged")
    await row.locator("input[type=checkbox]").click()
    parts.touch()
    await window.stands_at(STEP)

    page = await window.webview("#groups")
    values = page.locator("#groups td.value")
    await window.becomes(values.count, (2).__eq__, "a value of each rank")
    await window.page.locator(".tab", has_text="get_parameter('module.head.weight')").wait_for()
    marks = await window.page.evaluate(MARKS, "rank 1:")
    assert set(marks) == {str(line(SCRIPT, "# STEP"))}, marks
    await window.leave()


@pytest.mark.rest
async def test_the_line_that_makes_nan_is_marked(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """Rank 1 alone stops, at its `backward()`; the mark is where the number was made."""
    program = user.folder / "not_finite.py"
    shutil.copy(NOT_FINITE, program)
    words = ["run", "--", "torchrun", "--standalone", "--nproc-per-node", "2", str(program)]
    run = await launch(user, environment("torch"), words, OMP_NUM_THREADS="1")
    port = (await run.session())["port"]
    name = configuration(user, port, type="dap-mux", locate=True)
    window = await open_window(own_server)
    await window.start(name)
    await window.stands_at(BACKWARD)
    await stand(run, "running", "stopped")
    await window.becomes(
        lambda: window.page.evaluate(MARKS, "rank 1:"),
        lambda marks: {*marks} == {str(BUG)},
        "a mark where it was made",
    )
    await window.leave()
