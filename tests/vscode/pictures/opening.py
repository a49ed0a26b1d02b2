"""Windows of the size that pictures have."""

from __future__ import annotations

from playwright.async_api import Browser

from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.pictures.camera import SETTINGS
from tests.vscode.scene import OpenWindow
from tests.vscode.workbench import Window, new_window


def opener(browser: Browser, user: User) -> OpenWindow:
    """Opens windows on a user's folder."""

    async def opened(server: CodeServer) -> Window:
        window = await new_window(browser, user.folder)
        server.settings(**SETTINGS)
        await window.page.set_viewport_size({"width": 1280, "height": 800})
        await window.open(server.port)
        return window

    return opened
