"""Pictures of four real ranks, of which one is wrong: the documentation's, and of all that asks."""

from __future__ import annotations

import signal
from typing import Final

from playwright.async_api import FloatRect

from tests.real.driving import observing
from tests.support.processes.commands import LIMIT, Command, User, listed
from tests.vscode.code_server import CodeServer
from tests.vscode.pictures.camera import (
    EDITOR,
    MEDIA,
    PICKER,
    WALKTHROUGH,
    WHOLE,
    Camera,
)
from tests.vscode.scene import EXAMPLE, REDUCE, OpenWindow, stand, stopped
from tests.vscode.workbench import CALL_STACK, CONSOLE, RANKS, VARIABLES, Row

STACK: Final = '.pane:has(> .pane-header[aria-label="Call Stack Section"])'
DIALOG: Final = ".monaco-dialog-box"
WRONG: Final = "340268"  # what rank 2 has for a loss
FOUR_STOPPED: Final = ("stopped", "stopped", "stopped", "stopped")


async def four_ranks(user: User, server: CodeServer, opened: OpenWindow) -> None:
    """One session at the step at which a rank is wrong, until that rank dies."""
    window, run = await stopped(user, server, opened, "dap-mux", "step == 5")
    server.knows(run.session_path)
    camera = Camera(window)
    await camera.side_bar()
    await window.console("cast ranks(0:4) p loss")
    await window.becomes(lambda: window.rows(CONSOLE), _merged, "the merged answer")
    await window.page.locator(".view-line", has_text="● 0-3").first.wait_for()
    await camera.take("overview", folder=MEDIA)
    await camera.take("ranks", RANKS, MEDIA)
    await camera.take("call-stack", STACK, MEDIA)
    await camera.take("status-bar", ".part.statusbar .left-items", MEDIA)
    await _hover(camera)
    await _menus(camera)
    await _pickers(camera)
    await _outputs(camera)
    await camera.compare("loss", "compare", MEDIA)
    await _export(camera)
    await camera.watch("loss", "watch")
    await camera.mesh("mesh", ("class", "value"))
    await _breakpoint(camera)
    await _stale(camera, run)
    await _death(camera, user, run)
    await window.leave()
    await _ended(camera)
    await window.close()


async def _hover(camera: Camera) -> None:
    await camera.window.point_at("loss, grad = model", "loss")
    await camera.window.unfolded()
    box = await camera.window.page.locator(".debug-hover-widget").first.bounding_box()
    assert box is not None
    # The walkthrough shows it small: no more than is read.
    around: FloatRect = {
        "x": box["x"] - 75,
        "y": box["y"] - 4,
        "width": box["width"] + 90,
        "height": box["height"] + 62,  # to the line with the breakpoint
    }
    await camera.take("hover", around, WALKTHROUGH)
    await camera.take("hover-4", EDITOR)
    await camera.point_at_nothing()


async def _menus(camera: Camera) -> None:
    """Of a rank, of a row of the call stack, of a variable and of a line."""
    window = camera.window
    for name, row in {
        "menu-rank": f'{RANKS} .monaco-list-row[aria-label^="rank 3"]',
        "menu-class": f'{RANKS} .monaco-list-row[aria-label^="4 ranks"]',
        "menu-call-stack": f'{CALL_STACK} .monaco-list-row[aria-label^="Thread rank 1"]',
        "menu-variable": f'{VARIABLES} .monaco-list-row[aria-label^="loss, value"]',
        "menu-line": ".view-line:has-text('a good line for a breakpoint')",
    }.items():
        await window.page.locator(row).first.click(button="right")
        await window.page.locator(".monaco-menu .action-item").first.wait_for()
        await camera.take(name)
        await window.page.keyboard.press("Escape")
    await window.command("Focus on Ranks View")
    await window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank 3"]').first.hover()
    await camera.take("row-buttons", RANKS)
    await camera.point_at_nothing()


async def _pickers(camera: Camera) -> None:
    """Everything that asks, without a word typed, with a good one and with a wrong one."""
    window = camera.window
    await camera.picker("Ranks: Set Scope", "scope", ready="auto")
    await camera.picker("Ranks: Choose What the Call Stack Shows", "view", ready="auto")
    cast = "Ranks: Cast to Ranks"
    await camera.picker(cast, "rank-set", ready="stopped")
    await camera.picker(cast, "rank-set-typed", "0-2", "3 ranks")
    await camera.picker(cast, "rank-set-begun", "ran", "ranks(")
    await camera.picker(cast, "rank-set-wrong", "ranks(tp=0)", "mesh")
    await camera.picker(cast, "rank-set-empty", "running", "no ranks")
    await window.command(cast)
    await window.page.locator(PICKER).get_by_text("which ranks?").wait_for()
    await window.page.locator(f"{PICKER} .monaco-list-row").first.wait_for()
    await window.page.keyboard.press("Enter")
    await camera.asked("command", ready="step over")
    await camera.asked("command-typed", "p grad", "p grad_norm")
    await camera.close_picker()
    await camera.picker("Ranks: Release Ranks", "release", ready="stopped")
    await window.command("Ranks: Release Ranks")
    await window.page.locator(PICKER).get_by_text("which ones?").wait_for()
    await window.page.locator(f"{PICKER} .monaco-list-row").first.wait_for()
    await window.page.keyboard.press("Enter")
    await window.page.locator(DIALOG).wait_for()
    await camera.take("release-question")
    await window.page.keyboard.press("Escape")
    await camera.picker("Ranks: Search Ranks", "search")
    await window.command("Ranks: Search Ranks")
    await camera.asked("search-typed", "1-2 train")
    await camera.take("search-found")
    await camera.close_picker()
    await window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank 3"]').click(
        position={"x": 60, "y": 10}
    )
    await camera.picker("Ranks: New Group", "group", "2 fast", "Use letters")
    await camera.picker("Ranks: Compare Across Ranks", "compare-expression")
    await window.page.keyboard.press("F1")
    await camera.asked("commands", ">Ranks: ", "Search Ranks")
    await camera.close_picker()


async def _outputs(camera: Camera) -> None:
    """What *Cast to Ranks* and *List Ranks* answer, and the tooltip of the status bar."""
    window = camera.window
    await window.command("Ranks: Cast to Ranks")
    for words in ("stopped", "p loss"):
        box = window.page.locator(f"{PICKER} input").first
        await box.fill(words)
        row = window.page.locator(f"{PICKER} .monaco-list-row", has_text=words).first
        await row.wait_for()
        await window.page.keyboard.press("Enter")
        await row.wait_for(state="hidden")
    output = window.page.locator(".output-view .view-lines")
    await output.get_by_text(WRONG).first.wait_for()
    await window.command("Ranks: List Ranks")
    await output.get_by_text("data_parallel.py").first.wait_for()
    await camera.take("output", ".part.panel")
    await window.page.locator(".statusbar-item", has_text="4 ranks").hover()
    await window.page.locator(".workbench-hover").wait_for()
    await camera.take("status-bar-tooltip")
    await camera.point_at_nothing()
    await window.command("Debug Console: Focus on Debug Console View")


async def _export(camera: Camera) -> None:
    """The questions of the Compare view's buttons."""
    page = await camera.window.webview("#groups tbody tr")
    await page.locator("#export").click()
    await camera.asked("export", ready="Export the values")
    await camera.close_picker()
    await page.locator("#group").click()
    await camera.asked("group-of-outliers", ready="Name for rank 2")
    await camera.close_picker()
    await page.locator("#expression").fill("los")
    await page.locator("#ask button").click()
    await page.locator("#problem:not([hidden]), tr.error").first.wait_for()
    await camera.take("compare-error", EDITOR)
    await page.locator("#expression").fill("loss")
    await page.locator("#ranks").fill("ranks(tp=0)")
    await page.locator("#ask button").click()
    await page.locator("#problem:not([hidden])").wait_for()
    await camera.take("compare-problem", EDITOR)
    await page.locator("#ranks").fill("all")
    await page.locator("#ask button").click()
    await page.locator("#problem").wait_for(state="hidden")


async def _breakpoint(camera: Camera) -> None:
    """A condition that picks ranks, while it is typed and as VS Code shows it."""
    window = camera.window
    await window.command("View: Focus First Editor Group")
    await window.open_file(EXAMPLE, REDUCE)
    await window.command("Debug: Edit Breakpoint")
    widget = window.page.locator(".breakpoint-widget .monaco-editor").first
    await widget.click()
    await window.page.keyboard.press("Control+A")
    await window.page.keyboard.insert_text("ranks(1,3): ste")
    await window.page.keyboard.press("Control+Space")
    await camera.take("condition")
    await window.page.keyboard.press("Escape")
    await window.page.keyboard.press("Escape")


async def _stale(camera: Camera, run: Command) -> None:
    """The Compare view after one of its ranks has run on; the mark of the focus beside it."""
    window = camera.window
    await window.page.keyboard.press("F10")
    await window.stands_at(REDUCE + 1)
    await stand(run, *FOUR_STOPPED)
    page = await window.webview("#groups tbody tr")
    await page.locator("#age:not([hidden])").wait_for()
    await camera.take("compare-stale")


async def _death(camera: Camera, user: User, run: Command) -> None:
    """A rank is killed: the notification, the line in the console, the first row of Ranks."""
    window = camera.window
    client = await observing(run)
    pid: int = (await listed(client, "state", *FOUR_STOPPED))[2]["pid"]
    await client.disconnect()
    user.signal(pid, signal.SIGSEGV)
    toast = window.page.locator(".notification-toast", has_text="rank 2 died").first
    await toast.wait_for(timeout=LIMIT * 1000)
    await window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="1 rank died"]').wait_for()
    await camera.take("death")
    await toast.get_by_text("Show Log").click()
    await window.page.locator(
        f"{CONSOLE} .monaco-list-row", has_text="rank 2 died"
    ).first.wait_for()
    await camera.take("death-log")
    row = window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank 2, died"]').first
    await row.hover()
    await window.page.locator(".workbench-hover").first.wait_for()
    await camera.take("death-tooltip")
    await camera.point_at_nothing()


async def _ended(camera: Camera) -> None:
    """The Compare view that has outlived its session."""
    page = await camera.window.webview("#groups tbody tr")
    await page.locator("#words", has_text="ended").wait_for()
    await camera.take("compare-ended", WHOLE)


def _merged(rows: list[Row]) -> bool:
    return any(WRONG in str(row) for row in rows)
