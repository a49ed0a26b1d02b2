"""One window of VS Code: what a user can press, and what stands there to be read.

Nothing here waits for time to pass: `becomes` looks until what is wanted holds, and says at its
limit what it saw instead.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from playwright.async_api import Browser, Error, Frame, Locator, Page, async_playwright
from playwright.async_api import TimeoutError as Late

from tests.vscode.scripts import KEYS, MARKED, ROWS, STOP_LINE, TAKE, WATCH_STOP_LINE

LIMIT: Final = 60.0  # s; not a wait
_LOOK_AGAIN: Final = 0.05
_SOON: Final = 2000  # ms: what VS Code may have missed is asked for again after that
_AT_FIRST: Final = 500  # ms: right after loading it does not look again for a file by itself
CALL_STACK: Final = ".debug-call-stack"
VARIABLES: Final = ".debug-variables"
CONSOLE: Final = ".repl"
WATCH: Final = ".debug-watch"
RANKS: Final = '.pane:has(> .pane-header[aria-label="Ranks Section"])'
_TWISTIE: Final = ".monaco-tl-twistie"
_A_FEW_ROWS: Final = 60  # px
_TALL: Final = 1300  # px: a screen on which no view hides its rows
_BROWSER: Final = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
).split()
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """A row of a list or tree: what a screen reader says of it, and what stands there."""

    label: str
    text: str


class Window:
    """A window; `becomes` and all that waits raises AssertionError with what it saw."""

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
        take = partial(self.page.evaluate, TAKE, [text, wanted])
        deadline = time.monotonic() + LIMIT
        patience = _AT_FIRST
        while time.monotonic() < deadline:
            await self.page.keyboard.press("F1" if text.startswith(">") else "Control+P")
            with suppress(Late):
                await box.fill(text, timeout=_SOON)
                if await self._soon(take, bool, patience):
                    return
            # The focus went elsewhere, or right after loading not all is known.
            await self.page.keyboard.press("Escape")
            patience = min(2 * patience, _SOON)
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
            if await self._soon(look, there):
                return
        raise AssertionError(f"no keys for {file}, its line {line}; instead: {await look()}")

    async def _soon(
        self, look: Callable[[], Awaitable[T]], wanted: Callable[[T], object], limit: int = _SOON
    ) -> bool:
        """Whether it is as wanted within so many milliseconds."""
        deadline = time.monotonic() + limit / 1000
        while time.monotonic() < deadline:
            if wanted(await look()):
                return True
            await asyncio.sleep(_LOOK_AGAIN)
        return False

    async def extension(self) -> None:
        """Wait until our extension runs; a file of Python is open.

        By a question of its own: what it told VS Code before, such as its terminals' variables, is
        known there by then. While there is no process for extensions nobody asks.
        """
        question = self.page.locator(".quick-input-message", has_text="How many ranks?")
        for _ in range(int(LIMIT)):
            await self.command("dap-mux: Start Ranks of This File")
            with suppress(Late):
                await question.wait_for(timeout=_SOON)
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
        await self.page.keyboard.press("Enter")
        await widget.first.wait_for(state="hidden")
        self._marked.add((name, line))
        await self._mark(name, line)

    # The session

    async def start(self, name: str) -> None:
        """Start a configuration of launch.json by its name."""
        await self.pick(f"debug {name}", name)
        await self.page.locator(".debug-toolbar").wait_for(timeout=LIMIT * 1000)
        await self.command("View: Show Run and Debug")

    async def control(self, action: str) -> None:
        """Press a button of the debug toolbar: `continue`, `step-over`, `disconnect` …"""
        await self.page.locator(f".debug-toolbar .codicon-debug-{action}").click()

    async def leave(self) -> None:
        """Shift+F5: disconnect, and wait until the session is over."""
        await self.page.keyboard.press("Shift+F5")
        await self.page.locator(".debug-toolbar").wait_for(state="hidden")

    async def rows(self, root: str) -> list[Row]:
        """The rows of a view, from top to bottom."""
        return [Row(*row) for row in await self.page.evaluate(ROWS, root)]

    async def has(self, root: str, *texts: str, inside: Sequence[str] = ()) -> None:
        """Wait until a view has rows that read or sound exactly so, whatever else it has.

        They may be inside of rows with these labels: one that is drawn anew may be folded again.
        """

        async def look() -> list[Row]:
            for label in inside:
                await self._press(self._row(root, label, folded=True).locator(_TWISTIE))
            return await self.rows(root)

        def wanted(seen: list[Row]) -> bool:
            return {*texts} <= {word for row in seen for word in (row.text, row.label)}

        await self.becomes(look, wanted, f"rows {texts} in {root}")

    def _row(self, root: str, label: str, *, folded: bool = False) -> Locator:
        state = '[aria-expanded="false"]' if folded else ""
        return self.page.locator(f'{root} .monaco-list-row[aria-label^="{label}"]{state}').first

    async def scroll_to(self, root: str, text: str) -> None:
        """Scroll a view down until a row reads so: rows out of sight are not there."""

        async def look() -> list[Row]:
            await self.page.locator(root).first.hover()
            await self.page.mouse.wheel(0, _A_FEW_ROWS)
            return await self.rows(root)

        await self.becomes(look, lambda seen: text in {row.text for row in seen}, text)

    async def threads(self) -> dict[str, str]:
        """Name and state of each thread in CALL STACK."""
        found = {}
        for row in await self.rows(CALL_STACK):
            thread = re.fullmatch(r"Thread (.*?) (Running|Paused.*)", row.label)
            if thread:
                found[thread[1]] = thread[2].split()[0].lower()
        return found

    async def shows(self, *states: str) -> None:
        """Wait until CALL STACK shows rank 0, 1, … in these states, and no other thread."""
        wanted = {f"rank {n}": state for n, state in enumerate(states)}
        await self.becomes(self.threads, lambda seen: seen == wanted, f"CALL STACK shows {wanted}")

    async def see_ranks(self) -> None:
        """Open our view Ranks, with room for its rows."""
        await self.page.set_viewport_size({"width": 1500, "height": _TALL})
        await self.command("Focus on Ranks View")

    async def stand(self, *classes: str) -> None:
        """Wait until the view Ranks has exactly these classes of ranks."""

        async def look() -> list[str]:
            labels = [row.label for row in await self.rows(RANKS)]
            return [label for label in labels if not label.startswith("rank ")]

        await self.becomes(look, lambda seen: seen == [*classes], f"classes {classes}")

    async def stop_line(self) -> int | None:
        """The line that the editor highlights as the place of the focus."""
        line: int | None = await self.page.evaluate(f"() => ({STOP_LINE})()")
        return line

    async def watch_stop_line(self) -> None:
        """From now on remember every line that is highlighted as the place of the focus."""
        await self.page.evaluate(WATCH_STOP_LINE)

    async def stop_lines(self) -> list[int]:
        """The lines that have been highlighted since, in order, each time anew."""
        seen: list[int] = await self.page.evaluate("() => window.stopLines")
        return seen

    async def stands_at(self, line: int) -> None:
        """Wait until the editor highlights this line."""
        await self.becomes(self.stop_line, lambda seen: seen == line, f"line {line} highlighted")

    async def expand(self, root: str, label: str) -> None:
        """Expand a row of a tree, whatever it is now."""
        row = self._row(root, label)
        for _ in range(int(LIMIT)):
            if await row.get_attribute("aria-expanded", timeout=LIMIT * 1000) == "true":
                return
            await self._press(row.locator(_TWISTIE))
        raise AssertionError(f"{label!r} does not expand: {await self.rows(root)}")

    async def context_menu(self, row: Locator, item: str) -> None:
        """Right-click, and choose what has this name; a row that is drawn anew has no menu."""
        wanted = self.page.locator(".monaco-menu .action-item", has_text=item)
        chosen = False
        for _ in range(int(LIMIT)):
            with suppress(Late):
                await row.click(button="right", timeout=_SOON)
                await wanted.wait_for(timeout=_SOON)
            while await wanted.count():  # a menu that has just opened is deaf for a moment
                with suppress(Error):
                    # Not given up early, it would be chosen twice; but at once where it has gone.
                    await (await wanted.element_handle(timeout=_SOON)).click()
                    chosen = True
            if chosen:
                return
        raise AssertionError(f"no menu with {item!r}")

    async def quick_fix(self, words: str) -> None:
        """Take the fix with these words where the cursor is; it may not be offered at once."""
        fix = self.page.locator(".action-widget .monaco-list-row.focused", has_text=words)
        for _ in range(int(LIMIT)):
            await self.page.keyboard.press("Control+.")
            with suppress(Late):
                await fix.first.wait_for(timeout=_SOON)
                await self.page.keyboard.press("Enter")
                await fix.first.wait_for(state="hidden")
                return
            await self.page.keyboard.press("Escape")
        raise AssertionError(f"no fix {words!r} is offered")

    @staticmethod
    async def _press(what: Locator) -> None:
        """Click it, if it is there and stands still long enough."""
        with suppress(Late):
            if await what.count():
                await what.click(timeout=_SOON)

    async def console(self, text: str) -> None:
        """Type a line into the debug console."""
        await self.command("Debug Console: Focus on Debug Console View")
        await self.page.locator(".repl-input-wrapper .monaco-editor").first.click()
        await self.page.keyboard.insert_text(text)
        await self.page.keyboard.press("Escape")
        await self.page.keyboard.press("Enter")

    async def watch(self, *expressions: str) -> None:
        """Add these to the panel Watch, by its own button."""
        header = self.page.locator('.pane-header[aria-label="Watch Section"]')
        field = self.page.locator(f"{WATCH} .inputBoxActionsContainer input, {WATCH} input").first
        for expression in expressions:
            await header.hover()
            await header.locator(".codicon-watch-expressions-add").click()
            await field.fill(expression)
            await field.press("Enter")

    async def hover(self, line: str, word: str, *words: str) -> None:
        """Let the mouse rest on a word until all these are said of it: several may speak of it."""
        text = self.page.locator(".view-line", has_text=line).locator("span > span", has_text=word)
        said = self.page.locator(".monaco-hover:not(.hidden)", has_text=word)
        for each in words:
            said = said.filter(has_text=each)
        for _ in range(int(LIMIT)):
            await text.first.hover()
            with suppress(Late):
                await said.first.wait_for(timeout=_SOON)
                return
            await self.page.mouse.move(0, 0)
        raise AssertionError(f"{words} are not said of {word!r}")

    async def webview(self, part: str) -> Frame:
        """The page inside the window, once it has this part."""

        async def look() -> list[Frame]:
            return [frame for frame in self.page.frames if await _holds(frame, part)]

        (frame,) = await self.becomes(look, lambda found: len(found) == 1, f"a page with {part}")
        return frame

    # The end, and what to look at when it was not a good one

    async def close(self) -> None:
        """Leave the workbench first: a closed browser alone leaves its extension host."""
        await self.page.goto("about:blank")
        await self.page.context.close()

    async def save(self, path: Path) -> None:
        """Write a screenshot, and beside it the rows of each view."""
        path.parent.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=path.with_suffix(".png"))
        views = {
            root: await self.page.evaluate(ROWS, root) for root in (".part", ".quick-input-widget")
        }
        path.with_suffix(".json").write_text(
            json.dumps(views, indent=1, ensure_ascii=False), "utf-8"
        )


async def _holds(frame: Frame, part: str) -> bool:
    try:
        return bool(await frame.locator(part).count())
    except Error:  # it has gone in the meantime
        return False


@asynccontextmanager
async def browsing(program: str) -> AsyncIterator[Browser]:
    """Chromium, without a screen."""
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(
            executable_path=program, headless=True, args=_BROWSER
        )
        yield running
        await running.close()


async def new_window(browser: Browser, folder: Path) -> Window:
    """A window on a folder, not yet loaded."""
    context = await browser.new_context(viewport={"width": 1500, "height": 950})
    context.set_default_timeout(LIMIT * 1000)
    return Window(await context.new_page(), folder)
