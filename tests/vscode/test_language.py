"""The language server as a real VS Code shows it: hints, hover, and a fix for a breakpoint.

Of the extension's own type hints and hover are in `test_views`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.processes.commands import User
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import (
    EXAMPLE,
    IN_A_WINDOW,
    REDUCE,
    OpenWindow,
    configuration,
    mappings,
    stand,
    stopped,
)
from tests.vscode.workbench import Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]


async def hint(window: Window, ranks: str) -> None:
    """Wait until these ranks are shown behind the line of the breakpoint."""
    line = window.page.locator(".view-line", has_text="mean_grad = world.all_reduce_mean(grad)")
    wanted = re.compile(rf"●\s{ranks}$")

    async def text() -> str:
        return (await line.inner_text()).strip()

    await window.becomes(text, wanted.search, f"the hint {ranks!r} behind the line")


@pytest.mark.rest
async def test_a_hover_shows_all_ranks_with_the_stock_type_too(
    user: User, stock_server: CodeServer, open_window: OpenWindow
) -> None:
    window, _ = await stopped(user, stock_server, open_window, "debugpy", "step == 5")
    await says_who_differs(window)


async def says_who_differs(window: Window) -> None:
    """Point at a name: this rank's value comes first, then the one that differs from most."""
    value = await window.point_at("loss, grad = model", "loss")
    assert re.search(r"^0\.\d{10,} \| ⚠ \{2\}: 340268… \| \{", value), value
    rows = dict(row.split(" =\n") for row in await window.unfolded())
    own, outlier, *others = list(rows)[:4]
    assert sorted([own, *others]) == ["{0}", "{1}", "{3}"], rows
    assert (outlier, rows[own]) == ("⚠ {2}", value.partition(" | ")[0]), rows
    assert rows["⚠ {2}"] == "340268.32927038794"


def elsewhere(user: User) -> Path:
    """Another folder with the same program, for the ranks."""
    folder = user.folder.parent / "elsewhere"
    (folder / EXAMPLE).parent.mkdir(parents=True)
    shutil.copy(user.folder / EXAMPLE, folder / EXAMPLE)
    return folder


async def wrongly_mapped(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> tuple[Window, dict[str, str]]:
    """A window that has attached to ranks whose folder launch.json does not know; what it lacks."""
    there = elsewhere(user)
    run = await start(user, str(there / EXAMPLE), "--steps", "100000", n=2)
    wrong = [{"localRoot": "${workspaceFolder}", "remoteRoot": "/nowhere"}]
    port = (await run.session())["port"]
    own_server.knows(run.session_path)
    name = configuration(user, port, type="dap-mux", pathMappings=wrong)
    window = await open_window(own_server)
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.start(name)
    await window.page.locator(".squiggly-warning").first.wait_for()
    return window, {"localRoot": "${workspaceFolder}", "remoteRoot": str(there)}


async def test_a_breakpoint_that_ranks_lack_is_mended(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """The ranks run the same program in another folder, which launch.json does not know."""
    window, mended = await wrongly_mapped(user, own_server, open_window)
    launch = user.folder / ".vscode/launch.json"
    fix = "Add path mapping to"
    await window.quick_fix(EXAMPLE, REDUCE, fix, lambda: mappings(launch) == [mended])


@pytest.mark.rest
async def test_each_window_shows_the_job_that_it_debugs(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """Two jobs of one file, each in a window of its own; the newest is not everybody's."""
    jobs = {n: await start(user, EXAMPLE, "--steps", "100000", n=n) for n in (2, 3)}
    ports = {n: (await run.session())["port"] for n, run in jobs.items()}
    for run in jobs.values():
        own_server.knows(run.session_path)
    windows = {}
    for n, run in jobs.items():
        name = configuration(user, ports[n], type="dap-mux")
        windows[n] = window = await open_window(own_server)
        await window.toggle_breakpoint(EXAMPLE, REDUCE)
        await window.start(name)
        await stand(run, *["stopped"] * n)
        await hint(window, f"0-{n - 1}")
    await windows[2].open_file(EXAMPLE, REDUCE)
    await hint(windows[2], "0-1")


@pytest.mark.rest
async def test_after_a_mapping_has_been_written_one_attaches_again(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """The breakpoint is met then, and what was written need not be saved first."""
    window, mended = await wrongly_mapped(user, own_server, open_window)
    await window.quick_fix_and(EXAMPLE, REDUCE, "Add path mapping to", "Attach Again")
    await window.stands_at(REDUCE)  # the other rank may have been beyond it, and waits for this one
    assert mappings(user.folder / ".vscode/launch.json") == [mended]
