"""Pictures of 64 and 512 simulated ranks, for whoever changes a view."""

from __future__ import annotations

from typing import Final

from dap_mux.engine import Settings
from dap_mux.pure.rank_sets.world import Mesh
from tests.engine.test_why import RECEIVES, SLEEPS
from tests.support.fake_rank.program import FIRST, SCRIPT
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.waiting import until
from tests.support.session import session
from tests.vscode.fake_job import FakeJob, fake_job
from tests.vscode.pictures.camera import EDITOR, Camera
from tests.vscode.scene import configuration
from tests.vscode.workbench import CALL_STACK, RANKS, STACKS

COUNTS: Final = (64, 512)
TENSOR: Final = 8  # ranks along the dimension tp
AWAY: Final = 20
_CLASSES: Final = 3  # rows that there are at least


async def many_ranks(user: User, camera: Camera, count: int) -> None:
    """All at one line but one, which is elsewhere; another one has another value."""
    window = camera.window
    user.script(SCRIPT)
    settings = Settings(
        values_across_ranks="differing",
        meshes={"job": Mesh.parse(f"dp={count // TENSOR},tp={TENSOR}")},
    )
    async with (
        fake_job(count, user.folder / "train.py") as job,
        session(job.ports, settings=settings) as running,
    ):
        for rank in job.ranks:
            rank.data.values["loss"] = f"{2.25 + rank.number / 1000:.3f}"
        job.ranks[5].data.values["loss"] = "nan"
        name = configuration(user, running.port, type="dap-mux", name=f"{count} ranks")
        await window.start(name)
        await until(
            lambda: all(rank.configured for rank in job.ranks), within=LIMIT, what="all attached"
        )
        await _waiting(camera, job, count)
        job.stop(FIRST, {7: FIRST + 2})

        async def looked() -> list[str]:
            return [row.text for row in await window.rows(CALL_STACK)]

        await window.becomes(looked, lambda seen: len(seen) >= _CLASSES, "CALL STACK")
        await camera.side_bar()
        await camera.take(f"overview-{count}")
        await window.point_at("loss = step", "loss")
        await window.unfolded()
        await camera.take(f"hover-{count}", EDITOR)
        await camera.point_at_nothing()
        await camera.picker("Ranks: Cast to Ranks", f"rank-set-{count}", ready="all")
        await camera.picker(
            "Ranks: Cast to Ranks", f"rank-set-typed-{count}", "ranks(0:64:2)", "32 ranks"
        )
        await camera.compare("loss", f"compare-{count}")
        await camera.watch("loss", f"watch-{count}")
        await camera.mesh(f"mesh-{count}", ("state", "class", "value"))
        await window.open_file("train.py", FIRST)
        await _groups(camera, count)
        await window.leave()
    await window.close()


async def _waiting(camera: Camera, job: FakeJob, count: int) -> None:
    """All wait in a collective but one, which sleeps: who waits for whom, as *Why* answers."""
    window = camera.window
    for rank in job.ranks:
        rank.data.evidence = SLEEPS if rank.number == AWAY else RECEIVES
    await window.command("Ranks: Mesh")
    page = await window.webview("#mesh")
    await page.locator("#why").click()
    await page.locator("#waits li").first.wait_for()
    await camera.take(f"mesh-{count}-waits", EDITOR)
    await window.command("View: Close All Editors")
    await window.command("Ranks: Why Is My Job Not Moving?")
    answer = await window.webview("#sentence")
    await answer.locator("#evidence li").first.wait_for()
    await camera.take(f"why-{count}", EDITOR)
    await window.command("View: Close All Editors")


async def _groups(camera: Camera, count: int) -> None:
    """The scope at the top of Ranks and in the status bar, bundles, and Parallel Stacks."""
    window = camera.window
    await window.console("%groups slow 1,3,7")
    await window.page.set_viewport_size({"width": 1280, "height": 1300})
    await window.see_ranks()
    await window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="Scope, @slow"]').click()
    await window.page.locator(".statusbar-item", has_text="F10 → @slow (3)").wait_for()
    most = f"{count - 1} ranks stopped"
    await window.expand(RANKS, most)
    await camera.point_at_nothing()
    await camera.take(f"groups-{count}")
    await window.see_stacks()
    await window.page.locator(f"{STACKS} .monaco-list-row").nth(5).wait_for()
    await camera.take(f"groups-stacks-{count}")
