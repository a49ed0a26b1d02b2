"""Pictures of a job that hangs: the Parallel Stacks view, and the answer of *Why*."""

from __future__ import annotations

from typing import Final

from tests.support.processes.commands import Command, User
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.pictures.camera import MEDIA, Camera
from tests.vscode.scene import EXAMPLE, OpenWindow, configuration
from tests.vscode.workbench import STACKS, Window

PROGRAM: Final = "examples/hang.py"
ANSWER: Final = ".editor-group-container:has(.tab:has-text('Why Is My Job Not Moving?'))"
WAITING: Final = "ranks 0-1,3"
LOADING: Final = "load_complete_batch, hang.py:"


async def hanging(user: User, server: CodeServer, opened: OpenWindow) -> None:
    """Three ranks wait in a collective for a fourth, which waits for its data."""
    run = await start(user, "--no-wait", "--mesh", "dp=2,tp=2", PROGRAM, n=4)
    window = await _attached(user, run, server, opened)
    camera = Camera(window)
    await camera.widen()
    await window.page.keyboard.press("Escape")  # what the mouse has passed may tell something
    await window.page.locator(".workbench-hover").wait_for(state="hidden")
    for view in ("Variables", "Watch", "Breakpoints"):
        await window.page.locator(f'.pane-header[aria-label="{view} Section"]').click()
    await window.page.locator('.pane-header[aria-label^="Ranks"]').click()
    await window.see_stacks()
    await _hangs(window)
    await camera.point_at_nothing()
    await camera.take("stacks-overview")
    await camera.take("stacks", STACKS, MEDIA)
    await window.page.locator(_row(LOADING)).click(button="right")
    await window.page.locator(".monaco-menu .action-item").first.wait_for()
    await camera.take("menu-stack")
    await window.page.keyboard.press("Escape")
    await window.command("Ranks: Why Is My Job Not Moving?")
    page = await window.webview("#sentence")
    await page.locator("#evidence li").first.wait_for()
    await camera.point_at_nothing()
    await window.command("View: Toggle Panel Visibility")
    await camera.take("why-overview")
    await camera.take("why", ANSWER, MEDIA)
    await camera.mesh("mesh-waits", ("state",))
    await window.leave()
    await window.close()


async def _attached(user: User, run: Command, server: CodeServer, opened: OpenWindow) -> Window:
    name = configuration(user, (await run.session())["port"], type="dap-mux")
    window = await opened(server)
    await window.open_file(EXAMPLE, 146)
    await window.start(name)
    return window


async def _hangs(window: Window) -> None:
    """Look again until three ranks wait and the fourth loads."""
    refresh = window.page.locator(f'{STACKS} .action-label[aria-label="Refresh"]')

    async def look() -> list[str]:
        await window.page.locator(STACKS).hover()
        await refresh.click()
        return [row.label for row in await window.rows(STACKS)]

    def wanted(labels: list[str]) -> bool:
        loads = any(label.startswith(LOADING) for label in labels)
        return WAITING in labels and loads

    await window.becomes(look, wanted, "it hangs")


def _row(label: str) -> str:
    return f'{STACKS} .monaco-list-row[aria-label^="{label}"]'
