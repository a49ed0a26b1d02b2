"""Ranks stopped at two lines of one file: which is the focus, and how the others get there."""

from __future__ import annotations

import re
from typing import Final

import pytest
from playwright.async_api import Locator, Position

from tests.support.processes.commands import User, line_of
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.row_buttons import observer_of, press
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration, stand
from tests.vscode.scripts import GROUP_MARKS, MARKS
from tests.vscode.workbench import RANKS, Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
ON_THE_NAME: Final[Position] = {"x": 60, "y": 10}  # the buttons are beside it
BLUE: Final = "rgb(55, 148, 255)"  # the first hue, of the larger class
ORANGE: Final = "rgb(209, 134, 22)"
SOME: Final = "that of many"
TRAIN: Final = """\
import os
import time

rank = int(os.environ["RANK"])
total = 0
for step in range(1_000_000):
    time.sleep(0.01)
    loss = rank + step  # here
    total += loss  # there
    mean = total / (step + 1)  # behind
    print(rank, mean)  # after
"""


async def test_the_focus_is_marked_and_the_others_run_to_it(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """No line moves in the window for it."""
    path = user.script(TRAIN)
    here, there, behind = (line_of(path, mark) for mark in ("here", "there", "behind"))
    run = await start(user, "train.py", n=4)
    name = configuration(user, (await run.session())["port"], type="dap-mux")
    own_server.knows(run.session_path)
    window = await open_window(own_server)
    await window.toggle_breakpoint("train.py", here)
    await window.start(name)
    await stand(run, "stopped", "stopped", "stopped", "stopped")
    observer = await observer_of(run)
    await window.see_ranks()
    await hint(window, "# here", "0-3")
    assert await marks(window) == {}, "there is one line only"
    top = await top_of(window, "# behind")

    await press(window, observer, "rank 3, stopped", "Step Over", lambda row: row["line"] == there)
    await window.stand(
        f"1 rank stopped at train.py:{there} in <module>: 3",
        f"3 ranks stopped at train.py:{here} in <module>: 0-2",
    )
    await colours(window, {here: BLUE, there: ORANGE})
    await hint(window, "# here", "0-2")
    await hint(window, "# there", "3")
    # At once, when the view may be read anew still: such a click was lost.
    await rank_row(window, 3).click(position=ON_THE_NAME)
    await marked(window, there, "rank 3")
    assert await top_of(window, "# behind") == top, "the text has not moved"
    await rank_row(window, 0).click(position=ON_THE_NAME)
    await marked(window, here, "rank 0")
    await scopes(window, here, there)

    line = window.page.locator(".view-line", has_text="# there").first
    await window.context_menu(line, "Run All Ranks Here")
    await hint(window, "# there", "0-3")
    await window.becomes(lambda: marks(window), {}.__eq__, "one line, and no mark")
    await colours(window, {there: ORANGE})

    await press(window, observer, "rank 1, stopped", "Step Over", lambda row: row["line"] == behind)
    await hint(window, "# behind", "1")
    await window.open_file("train.py", behind)
    await window.command("Ranks: Run All Ranks Here")
    await hint(window, "# behind", "0-3")
    await window.command("Ranks: Run All Ranks Here")
    await window.told(f"No rank is stopped at line {behind}, or all ranks are.")
    await beside(window, behind)


async def scopes(window: Window, here: int, there: int) -> None:
    """What F10 moves: by a click at the top of Ranks, by more of them, and by keys."""

    def choice(label: str) -> Locator:
        return window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="Scope, {label},"]')

    await window.expand(RANKS, "Scope of continue")
    await choice(f"train.py:{there}").click()
    await says(window, f"F10 → train.py:{there} (1)", ORANGE)
    await choice(f"train.py:{here}").click(modifiers=["Control"])
    await says(window, f"F10 → train.py:{here} + train.py:{there} (4)", SOME)
    await window.page.keyboard.press("Shift+Alt+0")
    await says(window, "scope: all")
    await window.page.keyboard.press("Shift+Alt+1")
    await says(window, f"F10 → train.py:{here} (3)", BLUE)
    await window.page.keyboard.press("Shift+Alt+1")
    await says(window, "scope: auto")
    await window.page.keyboard.press("Shift+Alt+u")
    await marked(window, there, "rank 3")
    await window.page.keyboard.press("Shift+Alt+n")
    await marked(window, here, "rank 0")


async def beside(window: Window, behind: int) -> None:
    """A step of others than the focus, which stays."""
    await rank_row(window, 0).click(position=ON_THE_NAME)
    await window.console("%scope 3")
    await says(window, "F10 → 3", SOME)
    await window.page.keyboard.press("F10")
    await hint(window, "# after", "3")
    await hint(window, "# behind", "0-2")
    await window.becomes(lambda: marks(window), lambda seen: [*seen] == [str(behind)], "the focus")
    await window.shows("paused", "paused", "paused", "paused")


async def says(window: Window, text: str, colour: str = "") -> None:
    """Wait until the status bar says what a step moves, in this colour."""
    await window.page.locator(".statusbar-item", has_text=text).wait_for()
    dot = window.page.locator(".statusbar-item .codicon-circle-large-filled")
    await dot.wait_for(state="visible" if colour else "hidden")
    if colour not in ("", SOME):
        shown = await dot.evaluate("dot => getComputedStyle(dot).color")
        assert shown == colour, shown


async def colours(window: Window, wanted: dict[int, str]) -> None:
    """Wait until these lines, and no others, have a bar in these colours."""
    named = {str(line): colour for line, colour in wanted.items()}

    async def look() -> dict[str, str]:
        seen: dict[str, str] = await window.page.evaluate(GROUP_MARKS)
        return seen

    await window.becomes(look, named.__eq__, f"bars {named}")


def rank_row(window: Window, rank: int) -> Locator:
    """A rank's row in the Ranks view."""
    return window.page.locator(f'{RANKS} .monaco-list-row[aria-label^="rank {rank},"]').first


async def hint(window: Window, mark: str, ranks: str) -> None:
    """Wait until these ranks are shown at the end of the line with this comment."""
    line = window.page.locator(".view-line", has_text=mark)
    wanted = re.compile(rf"●\s{ranks}$")

    async def text() -> str:
        return (await line.inner_text()).strip()

    await window.becomes(text, wanted.search, f"the hint {ranks!r} behind {mark!r}")


async def marks(window: Window) -> dict[str, str]:
    """The marks of the focus by line."""
    seen: dict[str, str] = await window.page.evaluate(MARKS, "focus:")
    return seen


async def marked(window: Window, line: int, rank: str) -> None:
    """Wait until this line alone is marked as that of this rank."""
    wanted = {str(line): f"◀ focus: {rank}"}
    await window.becomes(lambda: marks(window), wanted.__eq__, f"the mark of {rank}")


async def top_of(window: Window, mark: str) -> float:
    """Where a line is on the screen, in pixels from its top."""
    box = await window.page.locator(".view-line", has_text=mark).bounding_box()
    assert box is not None
    return box["y"]
