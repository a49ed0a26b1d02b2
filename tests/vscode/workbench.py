"""One window of VS Code: what a user can press, and what stands there to be read.

Nothing here waits for time to pass: `becomes` looks until what is wanted holds, and says at its
limit what it saw instead.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Error, Frame, Locator, async_playwright
from playwright.async_api import TimeoutError as Late

from tests.vscode.editing import LIMIT, SOON, Editing, T
from tests.vscode.scripts import PANES, ROWS, STOP_LINE, WATCH_ERRORS, WATCH_STOP_LINE

CALL_STACK: Final = ".debug-call-stack"
VARIABLES: Final = ".debug-variables"
CONSOLE: Final = ".repl"
WATCH: Final = ".debug-watch"
RANKS: Final = '.pane:has(> .pane-header[aria-label^="Ranks"])'
STACKS: Final = '.pane:has(> .pane-header[aria-label^="Parallel Stacks"])'
_CALL_STACK_PANE: Final = '.pane:has(> .pane-header[aria-label^="Call Stack"])'
_TWISTIE: Final = ".monaco-tl-twistie"
_A_FEW_ROWS: Final = 60  # px
_REPETITIONS: Final = 30  # of a key that is held, a second
_ROOM: Final = 300  # px: for the rows of four ranks and their classes
_TALL: Final = 1300  # px: a screen on which no view hides its rows
_BROWSER: Final = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
).split()


@dataclass(frozen=True)
class Row:
    """A row of a list or tree: what a screen reader says of it, and what stands there."""

    label: str
    text: str


class Window(Editing):
    """A window; `becomes` and all that waits raises AssertionError with what it saw."""

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
        """Scroll a view down until a row begins so: rows out of sight are not there."""

        async def look() -> list[Row]:
            await self.page.locator(root).first.hover()
            await self.page.mouse.wheel(0, _A_FEW_ROWS)
            return await self.rows(root)

        await self.becomes(look, lambda seen: any(row.text.startswith(text) for row in seen), text)

    async def threads(self) -> dict[str, str]:
        """Name and state of each thread in CALL STACK."""
        found = {}
        for row in await self.rows(CALL_STACK):
            thread = re.fullmatch(
                r"Thread (.*?) (Running|Paused.*|At (?:barrier|differ).*)", row.label
            )
            if thread:
                found[thread[1]] = "running" if thread[2] == "Running" else "paused"
        return found

    async def shows(self, *states: str) -> None:
        """Wait until CALL STACK shows rank 0, 1, … in these states, and no other thread."""
        wanted = {f"rank {n}": state for n, state in enumerate(states)}
        if await self.soon(self.threads, wanted.__eq__):
            return
        await self._enlarge(_CALL_STACK_PANE)  # its last rows may be out of sight
        await self.becomes(self.threads, wanted.__eq__, f"CALL STACK shows {wanted}")

    async def see_ranks(self) -> None:
        """Open our view Ranks, with room for its rows and for those of CALL STACK above it."""
        await self.command("Focus on Ranks View")
        await self._enlarge(_CALL_STACK_PANE)
        await self._enlarge(RANKS)

    async def see_stacks(self) -> None:
        """Open our view Parallel Stacks, with room for its rows."""
        await self.command("Focus on Parallel Stacks View")
        await self._enlarge(STACKS)

    async def _enlarge(self, root: str) -> None:
        """Drag the upper edge of a view up: the views above it become smaller.

        In one move: where a view is added between two moves of a drag, VS Code 1.100 computes NaN
        for the height of every list of the side bar, and draws no row until the window is resized
        (`SplitView.addView` leaves the state of a drag as it was). The resize afterwards is for a
        view that came between the press and the move.
        """
        view = self.page.locator(root)
        await view.wait_for()
        place = await view.bounding_box()
        assert place is not None
        across = place["x"] + place["width"] / 2
        await self.page.mouse.move(across, place["y"])
        await self.page.mouse.down()
        await self.page.mouse.move(across, place["y"] - _ROOM)
        await self.page.mouse.up()
        await self._lay_out_again()

    async def _lay_out_again(self) -> None:
        """Make the window a pixel taller and as tall as before: all views are laid out anew."""
        size = self.page.viewport_size
        assert size is not None
        await self.page.set_viewport_size({**size, "height": size["height"] + 1})
        await self.page.set_viewport_size(size)

    async def stand(self, *classes: str) -> None:
        """Wait until the view Ranks has exactly these classes of ranks."""

        async def look() -> list[str]:
            labels = [row.label for row in await self.rows(RANKS)]
            return [label for label in labels if not label.startswith(("rank ", "Scope"))]

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

    async def watch_errors(self) -> None:
        """From now on remember what a user would take for an error."""
        await self.page.evaluate(WATCH_ERRORS)

    async def errors(self) -> list[str]:
        """What has looked like one since."""
        seen: list[str] = await self.page.evaluate("() => [...window.errorsSeen]")
        return seen

    async def hold(self, key: str, repetitions: int) -> None:
        """Hold a key: the keyboard repeats it 30 times a second until it is let go."""
        for _ in range(repetitions):
            await self.page.keyboard.down(key)
            await self.page.wait_for_timeout(1000 / _REPETITIONS)
        await self.page.keyboard.up(key)

    async def stands_at(self, line: int) -> None:
        """Wait until the editor highlights this line."""
        await self.becomes(self.stop_line, lambda seen: seen == line, f"line {line} highlighted")

    async def shows_exception(self, words: str) -> None:
        """Wait until CALL STACK shows an exception with these words.

        The editor's own box is left out at times, in a file that the stop has opened.
        """
        shown = self.page.locator(".call-stack-state-message .exception").filter(has_text=words)
        await shown.wait_for(timeout=LIMIT * 1000)

    async def expand(self, root: str, label: str) -> None:
        """Expand a row of a tree, whatever it is now."""
        row = self._row(root, label)
        for _ in range(int(LIMIT)):
            if await row.get_attribute("aria-expanded", timeout=LIMIT * 1000) == "true":
                return
            await self._press(row.locator(_TWISTIE))
        raise AssertionError(f"{label!r} does not expand: {await self.rows(root)}")

    async def context_menu(self, row: Locator, item: str, then: Locator | None = None) -> None:
        """Right-click, and choose what has this name; a row that is drawn anew has no menu.

        `then`: what the choice opens. A click may be reported as failed after it has opened that.
        """
        wanted = self.page.locator(".monaco-menu .action-item", has_text=item)
        chosen = False
        for _ in range(int(LIMIT)):
            with suppress(Late):
                await row.click(button="right", timeout=SOON)
                await wanted.wait_for(timeout=SOON)
            while await wanted.count():  # a menu that has just opened is deaf for a moment
                with suppress(Error):
                    # Not given up early, it would be chosen twice; but at once where it has gone.
                    await (await wanted.element_handle(timeout=SOON)).click()
                    chosen = True
            if chosen or (then is not None and await then.count()):
                return
        raise AssertionError(f"no menu with {item!r}")

    async def quick_fix(self, name: str, line: int, words: str, done: Callable[[], bool]) -> None:
        """Take the fix with these words on a line of a file, and save, until it has been done.

        It may not be offered at once, and what else takes the focus closes the list untaken. Once
        it is in the text it is offered no more, and a file is saved a while after it was asked for.
        """

        async def saved() -> bool:
            return done()

        for patience in _patiences():
            await self._take_fix(name, line, words, patience)
            await self.command("File: Save All Files")
            if await self.soon(saved, bool):
                return
        raise AssertionError(f"no fix {words!r} has been done")

    async def quick_fix_and(self, name: str, line: int, words: str, button: str) -> None:
        """Take the fix with these words, save nothing, and press a button of what is said then."""
        wanted = self.page.locator(".notification-list-item .monaco-button", has_text=button)
        for patience in _patiences():
            await self._take_fix(name, line, words, patience)
            with suppress(Late):
                await wanted.first.click(timeout=patience)
                return
        raise AssertionError(f"no {button!r} after the fix {words!r}")

    async def _take_fix(self, name: str, line: int, words: str, patience: int) -> None:
        fix = self.page.locator(".action-widget .monaco-list-row.focused", has_text=words)
        await self.open_file(name, line)
        await self.page.keyboard.press("Control+.")
        with suppress(Late):
            await fix.first.wait_for(timeout=patience)
            await self.page.keyboard.press("Enter")
            await fix.first.wait_for(state="hidden", timeout=SOON)
        await self.page.keyboard.press("Escape")

    @staticmethod
    async def _press(what: Locator) -> None:
        """Click it, if it is there and stands still long enough."""
        with suppress(Late):
            if await what.count():
                await what.click(timeout=SOON)

    async def console(self, text: str) -> None:
        """Type a line into the debug console."""
        await self.command("Debug Console: Focus on Debug Console View")
        await self.page.locator(".repl-input-wrapper .monaco-editor").first.click()
        await self.page.keyboard.insert_text(text)
        await self.page.keyboard.press("Escape")
        await self.page.keyboard.press("Enter")
        typed = self.page.locator(".repl-input-wrapper .view-lines").first
        word = text.split(maxsplit=1)[0]
        if not await self.soon(typed.inner_text, lambda shown: word not in shown):
            await self.page.keyboard.press("Enter")  # suggestions came late, and took the first

    async def watch(self, *expressions: str) -> None:
        """Add these to the panel Watch, by its own button."""
        header = self.page.locator('.pane-header[aria-label="Watch Section"]')
        field = self.page.locator(f"{WATCH} .inputBoxActionsContainer input, {WATCH} input").first
        for expression in expressions:
            await header.hover()
            await header.locator(".codicon-watch-expressions-add").click()
            await field.fill(expression)
            await field.press("Enter")

    async def point_at(self, line: str, word: str) -> str:
        """Let the mouse rest on a word of a line; return the value that the debugger shows."""
        text = self.page.locator(".view-line", has_text=line).locator("span > span", has_text=word)
        await text.first.hover()
        shown = self.page.locator(".debug-hover-widget")
        await shown.wait_for()
        return await shown.locator(".value").first.inner_text()

    async def unfolded(self) -> list[str]:
        """Return the rows of the expanded value that the mouse points at."""
        rows = self.page.locator(".debug-hover-widget .monaco-list-row")
        await rows.first.wait_for()
        return [await row.inner_text() for row in await rows.all()]

    async def variable_menu(self, variable: str, item: str) -> None:
        """Choose an item of a local variable's menu."""
        await self.expand(VARIABLES, "Scope Locals")
        row = self.page.locator(f'{VARIABLES} .monaco-list-row[aria-label^="{variable}, value"]')
        await self.context_menu(row, item)

    async def webview(self, part: str) -> Frame:
        """The page inside the window, once it has this part."""

        async def look() -> list[Frame]:
            return [frame for frame in self.page.frames if await _holds(frame, part)]

        (frame,) = await self.becomes(look, lambda found: len(found) == 1, f"a page with {part}")
        return frame

    async def quiet(self, look: Callable[[], Awaitable[T]], times: int = 20) -> T:
        """Wait until so many looks in a row have seen the same, and return that."""
        seen: list[T] = []

        async def again() -> list[T]:
            seen.append(await look())
            return seen[-times:]

        def same(last: list[T]) -> bool:
            return len(last) == times and all(one == last[0] for one in last)

        return (await self.becomes(again, same, "quiet"))[-1]

    # The end, and what to look at when it was not a good one

    async def close(self) -> None:
        """Leave the workbench first: a closed browser alone leaves its extension host."""
        await self.page.goto("about:blank")
        await self.page.context.close()

    async def save(self, path: Path) -> None:
        """Write a screenshot, and beside it the rows of each view and the layout of each pane."""
        path.parent.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=path.with_suffix(".png"))
        views = {
            root: await self.page.evaluate(ROWS, root) for root in (".part", ".quick-input-widget")
        }
        views["panes"] = await self.page.evaluate(PANES)
        path.with_suffix(".json").write_text(
            json.dumps(views, indent=1, ensure_ascii=False), "utf-8"
        )


async def _holds(frame: Frame, part: str) -> bool:
    try:
        return bool(await frame.locator(part).count())
    except Error:  # it has gone in the meantime
        return False


def _patiences() -> Iterator[int]:
    """Yield for how many ms to wait for what one asks for: longer each time, on a busy machine."""
    deadline, patience = time.monotonic() + LIMIT, SOON
    while time.monotonic() < deadline:
        yield patience
        patience *= 2


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
    context = await browser.new_context(
        viewport={"width": 1500, "height": _TALL},
        extra_http_headers={"Accept-Encoding": "identity"},  # packing costs a server on loopback
    )
    context.set_default_timeout(LIMIT * 1000)
    return Window(await context.new_page(), folder)
