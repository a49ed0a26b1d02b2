"""Commands, files and breakpoints of a VS Code window: what a user types and presses there.

Nothing here waits for time to pass: `becomes` looks until what is wanted holds, and says at its
limit what it saw instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from playwright.async_api import Page
from playwright.async_api import TimeoutError as Late

from tests.vscode.scripts import GUTTER, KEYS, MARKED, PUT, TAKE

LIMIT: Final = 60.0  # s; not a wait
SOON: Final = 2000  # ms: what VS Code may have missed is asked for again after that
_AT_FIRST: Final = 500  # ms: right after loading it does not look again for a file by itself
_LOOK_AGAIN: Final = 0.05
T = TypeVar("T")


class Editing:
    """A window in which files are opened and marked; all that waits raises AssertionError."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self._marked: set[tuple[str, int]] = set()  # files and lines with a breakpoint

    async def open(self, port: int) -> None:
        """Load the workbench and wait until it can be worked with."""
        await self.page.goto(f"http://127.0.0.1:{port}/?folder={self.folder}")
        await self.loaded()

    async def loaded(self) -> None:
        """Wait until the workbench shows its folder."""
        for part in (".monaco-workbench .part.statusbar", ".part.sidebar .monaco-list"):
            await self.page.locator(part).first.wait_for(timeout=LIMIT * 1000)

    async def becomes(
        self, look: Callable[[], Awaitable[T]], wanted: Callable[[T], object], what: str
    ) -> T:
        """Look until it is as wanted; return what was seen."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LIMIT
        while True:
            seen = await look()
            if wanted(seen):
                return seen
            assert loop.time() < deadline, f"{what}: not within {LIMIT} s; instead: {seen}"
            await asyncio.sleep(_LOOK_AGAIN)

    # Commands and files

    async def pick(self, text: str, row: str = "") -> None:
        """Type into the box that opens with this prefix, and take the row that has these words."""
        wanted = row or text.lstrip(">")
        box = self.page.locator(".quick-input-widget input").first
        put = partial(self.page.evaluate, PUT, text)
        take = partial(self.page.evaluate, TAKE, [text, wanted])
        deadline = time.monotonic() + LIMIT
        patience = _AT_FIRST
        while time.monotonic() < deadline:
            await self.page.keyboard.press("F1" if text.startswith(">") else "Control+P")
            with suppress(Late):
                await box.wait_for(timeout=SOON)
                if await put() and await self.soon(take, bool, patience):
                    return
            # The focus went elsewhere, or right after loading not all is known.
            await self.page.keyboard.press("Escape")
            patience = min(2 * patience, SOON)
        raise AssertionError(f"no {wanted!r} in the box for {text!r}")

    async def command(self, title: str) -> None:
        """Run a command by its title."""
        await self.pick(f">{title}")

    async def open_file(self, name: str, line: int) -> None:
        """Open a file of the workspace at a line, again where a view has taken the keys."""
        file = name.rpartition("/")[2]

        def there(seen: tuple[str, str, str]) -> bool:
            return seen[0] == file and seen[1].startswith(f"Ln {line},") and not seen[2]

        look = partial(self.page.evaluate, KEYS)
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            await self.pick(f"{name}:{line}", file)
            if await self.soon(look, there):
                return
        raise AssertionError(f"no keys for {file}, its line {line}; instead: {await look()}")

    async def soon(
        self, look: Callable[[], Awaitable[T]], wanted: Callable[[T], object], limit: int = SOON
    ) -> bool:
        """Whether it is as wanted within so many milliseconds."""
        deadline = time.monotonic() + limit / 1000
        while time.monotonic() < deadline:
            if wanted(await look()):
                return True
            await asyncio.sleep(_LOOK_AGAIN)
        return False

    async def answer(self, title: str, text: str) -> None:
        """Answer a question at the top of the window."""
        await self.page.locator(".quick-input-title", has_text=title).wait_for()
        box = self.page.locator(".quick-input-widget input").first
        await box.fill(text)
        await box.press("Enter")

    async def told(self, message: str) -> None:
        """Wait until a message says just this."""
        messages = self.page.locator(".notification-list-item-message")
        await self.becomes(messages.all_inner_texts, lambda seen: message in seen, message)

    async def extension(self) -> None:
        """Wait until our extension runs; a file of Python is open.

        By a question of its own: what it told VS Code before, such as its terminals' variables, is
        known there by then. While there is no process for extensions nobody asks.
        """
        question = self.page.locator(".quick-input-message", has_text="How many ranks?")
        for _ in range(int(LIMIT)):
            await self.command("dap-mux: Start Ranks of This File")
            with suppress(Late):
                await question.wait_for(timeout=SOON)
                await self.page.keyboard.press("Escape")
                await question.wait_for(state="hidden")
                return
        raise AssertionError("our extension does not run")

    # Breakpoints

    async def toggle_breakpoint(self, name: str, line: int) -> None:
        """F9 on a line."""
        await self.open_file(name, line)
        await self._mark(name, line)
        await self.page.keyboard.press("F9")
        self._marked ^= {(name, line)}
        await self._mark(name, line)

    async def click_gutter(self, name: str, line: int) -> None:
        """Click left of a line, where its breakpoint is or will be."""
        await self.open_file(name, line)
        await self._mark(name, line)
        place: tuple[float, float] = await self.page.evaluate(GUTTER, line)
        await self.page.mouse.click(*place)
        self._marked ^= {(name, line)}
        await self._mark(name, line)

    async def _mark(self, name: str, line: int) -> None:
        """Wait until the open file shows whether that line has a breakpoint."""
        wanted = (name, line) in self._marked
        look = partial(self.page.evaluate, MARKED, line)
        await self.becomes(look, lambda seen: seen is wanted, f"breakpoint {wanted} on {line}")

    async def conditional_breakpoint(self, name: str, line: int, condition: str) -> None:
        """A breakpoint with a condition, typed as a user types it."""
        await self._worded_breakpoint(name, line, "Add Conditional Breakpoint...", condition)

    async def logpoint(self, name: str, line: int, message: str) -> None:
        """A breakpoint that prints, and does not stop."""
        await self._worded_breakpoint(name, line, "Add Logpoint...", message)

    async def _worded_breakpoint(self, name: str, line: int, kind: str, text: str) -> None:
        await self.open_file(name, line)
        await self.command(f"Debug: {kind}")
        widget = self.page.locator(".breakpoint-widget .monaco-editor")
        await widget.first.click()
        await self.page.keyboard.insert_text(text)

        async def written() -> str:
            return (await widget.first.inner_text()).replace("\xa0", " ").strip()

        await self.becomes(written, lambda seen: seen == text, f"{text!r} stands there")
        await self.page.keyboard.press("Enter")
        await widget.first.wait_for(state="hidden")
        self._marked.add((name, line))
        await self._mark(name, line)
