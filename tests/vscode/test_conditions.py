"""Help while a breakpoint's condition is typed, in a real VS Code with four real ranks."""

from __future__ import annotations

from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, REDUCE, OpenWindow, stopped
from tests.vscode.workbench import Window

pytestmark = [*IN_A_WINDOW]
LINE = REDUCE + 1


async def test_rank_sets_and_our_words_are_completed(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """In the box of the condition, wherever VS Code has it from."""
    window, _ = await stopped(user, own_server, open_window, "dap-mux")
    await window.console("%groups slow 1,3")
    await window.open_file(EXAMPLE, LINE)
    await window.command("Debug: Add Conditional Breakpoint...")
    box = window.page.locator(".breakpoint-widget .monaco-editor").first
    await box.click()
    await window.page.keyboard.type("ran")
    await _offers(window, "ranks()", "ranks(0-3): ")
    await window.page.keyboard.press("Escape")
    for _ in range(3):
        await window.page.keyboard.press("Backspace")
    await window.page.keyboard.type("slo")
    await _offers(window, "@slow: ")
    await window.page.keyboard.press("Escape")
    for _ in range(3):
        await window.page.keyboard.press("Backspace")
    await window.page.keyboard.type("barr")
    await _offers(window, "barrier", "barrier: ")
    await window.page.keyboard.press("Escape")
    for _ in range(4):
        await window.page.keyboard.press("Backspace")
    await window.page.keyboard.type("diff")
    await _offers(window, "differ: ")
    await window.page.keyboard.press("Enter")

    async def text() -> str:
        return (await box.inner_text()).replace("\xa0", " ").strip()

    await window.becomes(text, "differ: loss".__eq__, "the word, and what it takes")


async def _offers(window: Window, *labels: str) -> None:
    """Wait until the suggestions have all of these."""
    rows = window.page.locator(".suggest-widget .monaco-list-row .label-name")

    async def look() -> list[str]:
        return [label.replace("\xa0", " ") for label in await rows.all_inner_texts()]

    wanted = {label.strip() for label in labels}
    await window.becomes(
        look, lambda seen: wanted <= {label.strip() for label in seen}, f"{labels} are offered"
    )
