"""*Why Is My Job Not Moving?* in a real VS Code: one rank waits for its data, others for it."""

from __future__ import annotations

from typing import Final

from tests.support.processes.commands import User, listed
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.row_buttons import observer_of
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration
from tests.vscode.test_mesh import MESH
from tests.vscode.workbench import Window

pytestmark = IN_A_WINDOW
PROGRAM: Final = "examples/hang.py"
LOADS: Final = "load_complete_batch"
LOADED: Final = {"0-1,3": "4", "2": "3"}  # how many batches each rank has when it hangs


async def test_the_answer_is_a_page_whose_frames_lead_to_the_suspect(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """The suspect runs, so a click opens its line; the mesh is open before anybody asks."""
    lines = (user.folder / PROGRAM).read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "time.sleep(0.5)" in text)
    run = await start(user, "--no-wait", *MESH, PROGRAM, n=4)
    name = configuration(user, (await run.session())["port"], type="dap-mux")
    window = await open_window(own_server)
    await window.start(name)
    observer = await observer_of(run)
    await listed(observer, "state", *["running"] * 4)

    async def hangs() -> bool:
        answer = await observer.request("cast", {"ranks": "all", "command": "p len(loaded)"})
        return {each["ranks"]: each["value"] for each in answer["results"]} == LOADED

    await window.command("Ranks: Mesh")
    await window.becomes(hangs, bool, "it hangs")
    await _arrows(window)
    await window.command("View: Close All Editors")
    await window.command("Ranks: Why Is My Job Not Moving?")
    page = await window.webview("#sentence")
    suspect = page.locator(".suspect", has_text=LOADS).first
    assert await suspect.locator("h2").inner_text() == "rank 2"
    assert "rank 2" in await page.locator("#sentence").inner_text()
    assert await page.locator("#evidence li").count() > 0

    await suspect.get_by_text(LOADS).first.click()
    tab = window.page.locator('.tab.active[data-resource-name="hang.py"]')
    await tab.wait_for()
    cursor = window.page.locator("#status\\.editor\\.selection")
    texts = await window.becomes(cursor.all_inner_texts, bool, "a cursor")
    assert texts[0].startswith(f"Ln {line},") or texts[0].startswith(f"Ln {line - 1},"), texts

    await observer.disconnect()
    await window.leave()


async def _arrows(window: Window) -> None:
    """From those that wait to whom they wait for."""
    page = await window.webview("#mesh")

    async def look() -> list[str]:
        await page.locator("#why").click()
        return await page.locator("#waits li").all_inner_texts()

    waits = ["rank 0 waits for rank 2", "ranks 1,3 wait for rank 0"]  # it reduces over rank 0
    await window.becomes(look, waits.__eq__, "who waits for whom")
    assert await page.locator("#mesh .awaited b").all_inner_texts() == ["0", "2"]
    assert await page.locator("#picture svg path").count() == 3
    label = await page.locator("td[data-rank='0']").get_attribute("aria-label")
    assert label == "rank 0, running, waits for rank 2"
