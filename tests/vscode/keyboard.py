"""A window that is used by somebody who has no mouse: every press is a key's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from playwright.async_api import Frame, Locator

from tests.vscode.editing import LIMIT
from tests.vscode.workbench import RANKS, Window

MOST: Final = 40  # presses of one key on the way to something
PICKER: Final = ".quick-input-widget"
DIALOG: Final = ".monaco-dialog-box"
TOAST: Final = ".notification-toast"
_FOCUSED_ROW: Final = f"{PICKER} .quick-input-list .monaco-list-row.focused"
# A press of the mouse, anywhere in the window.
_WATCH_MOUSE: Final = """() => {
    window.mousePresses = 0;
    const count = event => { if (event.isTrusted) window.mousePresses++; };
    for (const kind of ['mousedown', 'wheel']) window.addEventListener(kind, count, true);
}"""
_ACTIVE: Final = """() => {
    const active = document.activeElement;
    return active ? (active.innerText || active.getAttribute('aria-label') || active.id) : '';
}"""


class Keyboard:
    """The keys of a window. All that waits raises AssertionError, or Playwright's TimeoutError."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.page = window.page
        self.press = window.page.keyboard.press
        self.type = window.page.keyboard.insert_text

    async def put_mouse_away(self) -> None:
        """From now on presses of the mouse are counted."""
        await self.page.evaluate(_WATCH_MOUSE)

    async def mouse_presses(self) -> int:
        count: int = await self.page.evaluate("() => window.mousePresses")
        return count

    # Boxes at the top of the window

    async def command(self, title: str) -> None:
        """F1, its title, Enter."""
        await self.press("F1")
        await self._type_and_take(title, title)

    async def open_file(self, name: str, line: int) -> None:
        """Ctrl+P, the file and its line, Enter."""
        await self.press("Control+P")
        await self._type_and_take(f"{name}:{line}", name.rpartition("/")[2])
        place = self.page.locator("#status\\.editor\\.selection", has_text=f"Ln {line},")
        await place.wait_for(timeout=LIMIT * 1000)

    async def _type_and_take(self, text: str, row: str) -> None:
        await self.page.locator(f"{PICKER} input").first.wait_for()
        await self.type(text)
        await self.page.locator(_FOCUSED_ROW, has_text=row).wait_for(timeout=LIMIT * 1000)
        await self.press("Enter")

    async def asked(self, question: str) -> None:
        """Wait for a box with this title, placeholder or message."""
        named = f'{PICKER} :text("{question}"), {PICKER} input[placeholder*="{question}"]'
        await self.page.locator(named).first.wait_for(timeout=LIMIT * 1000)

    async def escape(self, question: str, box: str = PICKER) -> None:
        """Leave a box or a dialog."""
        if box == PICKER:
            await self.asked(question)
        else:
            await self.page.locator(box, has_text=question).wait_for(timeout=LIMIT * 1000)
        await self.press("Escape")
        await self.page.locator(box).first.wait_for(state="hidden")

    async def choose(self, question: str, row: str) -> None:
        """Down to a row, Enter."""
        await self.asked(question)
        await self.page.locator(f"{PICKER} .monaco-list-row", has_text=row).first.wait_for()
        focused = self.page.locator(_FOCUSED_ROW)
        await self._until("ArrowDown", lambda: _reads(focused, row), row)
        await self.press("Enter")

    async def answer(self, question: str, text: str) -> None:
        """Type over what is there, Enter."""
        await self.asked(question)
        await self.press("Control+A")
        await self.type(text)
        await self.press("Enter")

    # Elsewhere

    async def row(self, label: str) -> None:
        """Go to a row of the view Ranks: from its top downwards."""
        await self.command("Focus on Ranks View")
        focused = self.page.locator(f"{RANKS} .monaco-list-row.focused")
        row = f'{RANKS} .monaco-list-row[aria-label^="{label}"]'
        await self.page.locator(row).first.wait_for(timeout=LIMIT * 1000)
        await self._focus_in(RANKS)
        await self.press("Home")
        await self._until("ArrowDown", lambda: _is_labelled(focused, label), label)

    async def choose_in_menu(self, item: str) -> None:
        """The menu of the row that has the keys, down to an item, Enter."""
        await self.press("Shift+F10")
        await self.page.locator(".monaco-menu .action-item", has_text=item).first.wait_for()
        focused = self.page.locator(".monaco-menu .action-item.focused")
        await self._until("ArrowDown", lambda: _reads(focused, item), item)
        await self.press("Enter")

    async def press_in_status_bar(self, item: str) -> None:
        """F6 to the status bar, then along it, Enter."""
        item_focused = self.page.locator(".part.statusbar .statusbar-item :focus")
        inside = self.page.locator(".part.statusbar:focus, .part.statusbar :focus")
        await self._until("F6", lambda: _is_there(inside), "the status bar")
        await self._until("ArrowRight", lambda: _reads(item_focused, item), item)
        await self.press("Enter")

    async def press_in_toast(self, message: str, button: str) -> None:
        """To the notification, to its button, Enter."""
        await self.page.locator(TOAST, has_text=message).first.wait_for(timeout=LIMIT * 1000)
        await self.command("Notifications: Focus Notification Toast")
        focused = await self._focus_in(TOAST)
        await self._until("Tab", lambda: _is(focused, button), button)
        await self.press("Enter")

    async def press_in_dialog(self, message: str, button: str) -> None:
        """Along the dialog's buttons, Enter."""
        await self.page.locator(DIALOG, has_text=message).wait_for(timeout=LIMIT * 1000)
        focused = await self._focus_in(DIALOG)
        await self._until("Tab", lambda: _is(focused, button), button)
        await self.press("Enter")

    async def _focus_in(self, part: str) -> Locator:
        """Wait until this part of the window has the keys: elsewhere they might be typed."""
        focused = self.page.locator(f"{part} :focus")
        await focused.first.wait_for(timeout=LIMIT * 1000)
        return focused

    async def tab_to(self, text: str) -> None:
        """Tab to what reads or is called so, in the window."""

        async def there() -> bool:
            active: str = await self.page.evaluate(_ACTIVE)
            return active.strip() == text

        await self._until("Tab", there, text)

    async def tab_in_page(self, frame: Frame, selector: str, key: str = "Tab") -> None:
        """Tab to this part of a page inside the window, which has the keys or is given them."""
        has_keys = partial(frame.evaluate, "() => document.hasFocus()")
        await self.window.becomes(has_keys, bool, "the page has the keys")
        wanted = frame.locator(f"{selector}:focus")
        await self._until(key, lambda: _is_there(wanted), selector)

    async def _until(self, key: str, there: Callable[[], Awaitable[bool]], what: str) -> None:
        """Press a key until the focus is there."""
        for _ in range(MOST):
            if await self.window.soon(there, bool, _A_LOOK):
                return
            await self.press(key)
        raise AssertionError(f"{what!r} is not reached by {key}")


_A_LOOK: Final = 250  # ms: VS Code moves the focus a moment after the key


async def _is_there(what: Locator) -> bool:
    return await what.count() > 0


async def _reads(what: Locator, text: str) -> bool:
    return any(text in seen for seen in await what.all_inner_texts())


async def _is(what: Locator, text: str) -> bool:
    return text in [seen.strip() for seen in await what.all_inner_texts()]


async def _is_labelled(what: Locator, label: str) -> bool:
    return [
        (await one.get_attribute("aria-label") or "").startswith(label) for one in await what.all()
    ] == [True]
