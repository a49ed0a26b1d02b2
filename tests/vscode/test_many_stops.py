"""Stop after stop in a real VS Code with every page and view of ours open: nothing grows."""

from __future__ import annotations

import os
from typing import Final

from playwright.async_api import Frame

from dap_mux.engine import Settings
from dap_mux.pure.rank_sets.world import Mesh
from tests.support.fake_rank.program import FIRST, SCRIPT
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.waiting import until
from tests.support.session import session
from tests.vscode.code_server import CodeServer
from tests.vscode.fake_job import FakeJob, fake_job
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration
from tests.vscode.workbench import Window

pytestmark = IN_A_WINDOW
STOPS: Final = int(os.environ.get("DAP_MUX_STOPS", "12"))  # 200 before a release
FEW: Final = 4  # stops after which everything has been drawn once
RANKS: Final = 64
ELEMENTS: Final = "() => document.querySelectorAll('*').length"
# Elements of a page may differ between two stops by those of a hover or of a progress bar.
SPARE: Final = 40
MOST_REQUESTS: Final = 24  # of the pages too: the watch compares, the tree asks for stacks


async def test_nothing_grows_from_stop_to_stop(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    user.script(SCRIPT)
    settings = Settings(meshes={"job": Mesh.parse("dp=8,tp=8")})
    async with (
        fake_job(RANKS, user.folder / "train.py") as job,
        session(job.ports, settings=settings) as running,
    ):
        window = await open_window(own_server)
        await window.start(configuration(user, running.port, type="dap-mux", name="64 ranks"))
        await until(
            lambda: all(rank.configured for rank in job.ranks), within=LIMIT, what="all attached"
        )
        await _stop(window, job, 0)
        await window.see_ranks()
        await window.command("Ranks: Mesh")
        grid = await window.webview("#mesh")
        for number in range(1, FEW):
            await _on(window, job, number)
        elements, cells = await _count(window, grid)
        asked = len(running.engine.asked)
        for number in range(FEW, FEW + STOPS):
            await _on(window, job, number)
        more, more_cells = await _count(window, grid)
        assert more <= elements + SPARE
        assert more_cells == cells
        assert len(running.engine.asked) - asked <= STOPS * MOST_REQUESTS
        await window.leave()


async def _on(window: Window, job: FakeJob, number: int) -> None:
    await window.command("Debug: Continue")
    await until(
        lambda: not any(rank.data.stopped for rank in job.ranks), within=LIMIT, what="all run"
    )
    await _stop(window, job, number)


async def _stop(window: Window, job: FakeJob, number: int) -> None:
    """All stop, rank 7 elsewhere each second time."""
    line = FIRST + number % 2
    job.stop(line, {7: FIRST + 2} if number % 2 else {})
    await window.stands_at(line)


async def _count(window: Window, grid: Frame) -> tuple[int, int]:
    """Elements of the window and of the page, once nothing is drawn any more."""

    async def look() -> tuple[int, int]:
        return await window.page.evaluate(ELEMENTS), await grid.evaluate(ELEMENTS)

    return await window.quiet(look, 10)
