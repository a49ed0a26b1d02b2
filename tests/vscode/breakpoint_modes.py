"""The drop-down of modes in VS Code's own editor of breakpoints."""

from __future__ import annotations

from typing import Final

from tests.vscode.workbench import Window

WIDGET: Final = ".breakpoint-widget"
ROWS: Final = ".monaco-select-box-dropdown-container .monaco-list-row .option-text"


async def edit(window: Window, mode: str, condition: str = "") -> list[str]:
    """Choose a mode, and a condition, for the breakpoint of the current line, or for a new one.

    Return the modes that were offered.
    """
    await window.command("Debug: Add Conditional Breakpoint...")
    # VS Code gives it the focus after a moment, and that closes a drop-down which is open by then.
    text = window.page.locator(f"{WIDGET} .monaco-editor.focused").first
    await text.wait_for()
    await window.page.locator(f"{WIDGET} .select-mode-container select").click()
    rows = window.page.locator(ROWS)
    await rows.filter(has_text=mode).first.wait_for()
    offered = await rows.all_inner_texts()
    await rows.filter(has_text=mode).first.click()
    text = window.page.locator(f"{WIDGET} .monaco-editor").first
    await text.click()
    await window.page.keyboard.press("Control+A")
    await window.page.keyboard.press("Delete")
    await window.page.keyboard.insert_text(condition)

    async def written() -> str:
        return (await text.inner_text()).replace("\xa0", " ").strip()

    await window.becomes(written, condition.__eq__, f"{condition!r} stands there")
    await window.page.keyboard.press("Enter")
    await text.wait_for(state="hidden")
    return offered
