"""Pictures from before there is a session: the walkthrough, the doctor, the first errors."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from playwright.async_api import Locator

from tests.support.processes.commands import LIMIT, User
from tests.support.processes.proc_net import free_ports
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.pictures.camera import EDITOR, SIDE_BAR, WHOLE, Camera
from tests.vscode.scene import EXAMPLE, OpenWindow

STEPS: Final = {  # of the walkthrough, and the headings of their pages; '' where it is a picture
    "Install dap-mux": "Install dap-mux",
    "Set a breakpoint": "Which ranks stop",
    "Start the ranks": "Start the ranks",
    "Control the ranks": "",
    "Attach to a cluster": "Attach to a cluster",
}
PICTURE: Final = 'img[alt^="The mouse on a variable"]'
DIALOG: Final = ".monaco-dialog-box"
REMOTE: Final = "Remote Attach to Cluster"
VERDICT: Final = "problem found:"


async def first_minutes(user: User, server: CodeServer, opened: OpenWindow) -> None:
    """What a newcomer sees, up to two sessions to choose from."""
    window = await opened(server)
    camera = Camera(window)
    await _pages(camera)
    await window.open_file(EXAMPLE, 1)
    await window.extension()
    await _starts(camera)
    _configure(user, _attach(free_ports(1)))
    await _nothing_listens(camera)
    await _doctor(camera)
    await _no_dap_mux(camera, user)
    await _sessions(camera, user, server)
    await window.close()


async def _pages(camera: Camera) -> None:
    """The extension's page, its settings, and each step of the walkthrough."""
    window = camera.window
    await window.page.keyboard.press("Control+Shift+X")
    await window.page.locator('.extension-list-item:has-text("dap-mux")').first.click()
    await window.webview('img[alt^="Four ranks at one line"]')
    await camera.take("page", EDITOR)
    await window.command("View: Close All Editors")
    await window.command("Preferences: Open Settings (UI)")
    await window.page.locator(".settings-editor .suggest-input-container").click()
    await window.page.keyboard.insert_text("@ext:dap-mux.dap-mux")
    await window.page.locator(".setting-item", has_text="Language Server").first.wait_for()
    await camera.take("settings", EDITOR)
    await window.command("View: Close All Editors")
    await window.command("dap-mux: Get Started")
    for number, (step, heading) in enumerate(STEPS.items(), 1):
        title = window.page.locator(".getting-started-step", has_text=step).first
        page = f'body[data-vscode-theme-kind] h1:text-is("{heading}")' if heading else ""

        async def drawn(title: Locator = title, page: str = page) -> None:
            """Anew: the colours of code are those of the theme in which it was drawn."""
            await window.command("View: Close All Editors")
            await window.command("dap-mux: Get Started")
            await title.click()
            if page:
                await window.webview(page)
            else:
                await window.page.locator(PICTURE).wait_for()

        await camera.take(f"walkthrough-{number}", EDITOR, before=drawn)
    await window.command("View: Close All Editors")


async def _starts(camera: Camera) -> None:
    """The ways to start, where nothing is configured."""
    window = camera.window
    await window.command("View: Show Run and Debug")
    await window.page.locator(SIDE_BAR).get_by_text("Start Ranks of This File").wait_for()
    await camera.take("welcome")
    await window.page.keyboard.press("F1")
    await camera.asked("commands-to-start", ">dap-mux: ", "Doctor")
    await camera.close_picker()
    await window.open_file(EXAMPLE, 1)
    await window.page.keyboard.press("F5")
    await camera.asked("start", ready="Launch 4 ranks")
    await camera.close_picker()
    await camera.picker("dap-mux: Start Ranks of This File", "count", "0", "positive")
    await window.command("dap-mux: Attach to a Running Session")
    await _toast(camera, "no dap-mux session is running", "no-session")


async def _nothing_listens(camera: Camera) -> None:
    """The first error, and what it is to wait."""
    window = camera.window
    dialog = window.page.locator(DIALOG, has_text="no session is listening")
    await window.pick(f"debug {REMOTE}", REMOTE)
    await dialog.wait_for(timeout=LIMIT * 1000)
    await camera.take("first-error")
    await dialog.get_by_role("button", name="Wait", exact=True).click()
    waiting = window.page.locator(".notification-toast", has_text="Waiting for a session").first
    await waiting.wait_for()
    await camera.take("waiting")
    await waiting.get_by_text("Cancel").click()
    await waiting.wait_for(state="hidden")


async def _doctor(camera: Camera) -> None:
    window = camera.window
    await window.command("dap-mux: Doctor: Check This Machine")
    output = window.page.locator(".output-view .view-lines")
    await output.get_by_text(VERDICT).first.wait_for(timeout=2 * LIMIT * 1000)
    await camera.take("doctor")
    await window.command("View: Toggle Maximized Panel")
    await camera.take("doctor-maximized")
    await window.command("View: Toggle Maximized Panel")


async def _no_dap_mux(camera: Camera, user: User) -> None:
    """A Python in which it is not installed."""
    nowhere = str(user.folder / ".venv/bin/python")
    one = {"name": "Nowhere", "type": "dap-mux", "request": "launch", "program": EXAMPLE}
    _configure(user, {**one, "python": nowhere})
    await camera.window.pick("debug Nowhere", "Nowhere")
    await _toast(camera, "dap-mux is not installed for", "not-installed")


async def _sessions(camera: Camera, user: User, server: CodeServer) -> None:
    """Two run: which of them, when one is asked for and when another was."""
    window = camera.window
    _configure(user, _attach(free_ports(1)))
    for _ in range(2):
        run = await start(user, EXAMPLE, n=2)
        await run.session()
        server.knows(run.session_path)
    await camera.picker("dap-mux: Attach to a Running Session", "session", ready="process")
    await window.pick(f"debug {REMOTE}", REMOTE)
    dialog = window.page.locator(DIALOG, has_text="A session has been running")
    await dialog.wait_for(timeout=LIMIT * 1000)
    await camera.take("first-error-offers")
    await window.page.keyboard.press("Escape")
    await dialog.wait_for(state="hidden")


async def _toast(camera: Camera, words: str, name: str) -> None:
    """Take a notification, and close it."""
    toast = camera.window.page.locator(".notification-toast", has_text=words).first
    await toast.wait_for(timeout=LIMIT * 1000)
    await camera.take(name, WHOLE)
    await camera.window.command("Notifications: Clear All Notifications")
    await toast.wait_for(state="hidden")


def _attach(port: int) -> dict[str, Any]:
    connect = {"host": "localhost", "port": port}
    return {"name": REMOTE, "type": "dap-mux", "request": "attach", "connect": connect,
            "python": sys.executable}  # fmt: skip


def _configure(user: User, configuration: dict[str, Any]) -> None:
    folder = user.folder / ".vscode"
    folder.mkdir(exist_ok=True)
    text = json.dumps({"version": "0.2.0", "configurations": [configuration]}, indent=2)
    (folder / "launch.json").write_text(text, "utf-8")
