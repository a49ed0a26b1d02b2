"""Everything that the extension has is reached by somebody who has no mouse."""

from __future__ import annotations

import os
import signal
from typing import Final

import pytest

from dap_mux.system import procfs
from tests.support.processes.commands import User
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.keyboard import DIALOG, TOAST, Keyboard
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, REDUCE, OpenWindow, example_line, pointing_at
from tests.vscode.terminal import rank_processes, run_to_their_end
from tests.vscode.workbench import CONSOLE, RANKS, VARIABLES

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
NORM: Final = example_line("grad_norm = math.hypot")
OUTPUT: Final = ".output-view .view-lines"
WRONG: Final = "340268"  # what rank 2 has for a loss


async def test_ranks_are_started_driven_compared_and_ended(
    own_server: CodeServer, open_window: OpenWindow
) -> None:
    window = await open_window(own_server)
    keys = Keyboard(window)
    await keys.put_mouse_away()
    await _start(keys)
    await _status_bar(keys)
    await _rows(keys)
    await _casts(keys)
    await _searches_and_names(keys)
    await _compares(keys)
    await _loses_a_rank(keys, own_server)
    assert await keys.mouse_presses() == 0
    await window.leave()
    await run_to_their_end(window, own_server)


async def _start(keys: Keyboard) -> None:
    """A breakpoint with a condition for some ranks, and F5 without a launch.json."""
    await keys.open_file(EXAMPLE, NORM)
    await keys.command("Debug: Add Conditional Breakpoint...")
    widget = keys.page.locator(".breakpoint-widget .monaco-editor.focused")
    await widget.wait_for()
    await keys.type("ranks(0:4): step == 5")
    await keys.press("Enter")
    await widget.wait_for(state="hidden")
    await keys.press("F5")
    await keys.escape("Which ranks do you want to debug?")
    await keys.command("dap-mux: Start Ranks of This File")
    await keys.escape("How many ranks?")
    await keys.press("F5")
    await keys.choose("Which ranks do you want to debug?", "Launch 4 ranks of this file")
    await _says(keys, "4 ranks · 4 stopped")
    await keys.window.stands_at(NORM)


async def _status_bar(keys: Keyboard) -> None:
    """Its two items, each left once and used once."""
    question = "Which ranks continue, pause and steps apply to"
    await keys.press_in_status_bar("scope: auto")
    await keys.escape(question)
    await keys.press_in_status_bar("scope: auto")
    await keys.choose(question, "class")
    await _says(keys, "scope: class")
    await keys.command("Ranks: Set Scope")
    await keys.choose(question, "auto")
    await _says(keys, "scope: auto")
    await keys.press_in_status_bar("4 ranks")
    await keys.choose("How the call stack shows ranks", "classes")
    place = f"data_parallel.py:{NORM}"
    rows = {f"rank 0 · {place}": "paused", f"3 × {place} · ranks 1-3": "paused"}
    await keys.window.becomes(keys.window.threads, rows.__eq__, f"CALL STACK shows {rows}")
    await _looks_at(keys, "step = 5")  # only then is VS Code through with the stop of these rows
    await keys.command("Ranks: Choose What the Call Stack Shows")
    await keys.choose("How the call stack shows ranks", "ranks")
    # There is no room for all of them, which `shows` would make with the mouse.
    first = {"rank 0": "paused", "rank 1": "paused"}
    await keys.window.becomes(
        keys.window.threads, lambda seen: first.items() <= seen.items(), f"CALL STACK has {first}"
    )


async def _rows(keys: Keyboard) -> None:
    """Each action of a row of the view Ranks."""
    window = keys.window
    await keys.row("rank 2, stopped")
    await keys.press("Enter")
    await _looks_at(keys, "loss = 340268 ▁▁█▁ {2}")
    await keys.row("rank 1, stopped")
    await keys.choose_in_menu("Step Over")
    three = f"3 ranks stopped at data_parallel.py:{NORM} in train: 0,2-3"
    await window.stand(f"1 rank stopped at data_parallel.py:{REDUCE} in train: 1", three)
    await keys.row("3 ranks stopped")
    await keys.choose_in_menu("Step Over")
    await window.stand(f"4 ranks stopped at data_parallel.py:{REDUCE} in train: 0-3")
    await keys.row("rank 0, stopped")
    await keys.choose_in_menu("Continue")
    await window.stand(
        f"3 ranks stopped at data_parallel.py:{REDUCE} in train: 1-3", "1 rank running: 0"
    )
    await keys.row("rank 0, running")
    await keys.choose_in_menu("Pause")
    await window.has(RANKS, "1 rank pausing: 0")
    await keys.row("rank 3, stopped")
    await keys.choose_in_menu("Focus")
    await _looks_at(keys, "loss = 0.0468861 ▁█▁ {2}")


async def _looks_at(keys: Keyboard, value: str) -> None:
    """Wait until the variables have this row, and the editor has the keys."""
    await keys.window.has(VARIABLES, value, inside=["Scope Locals"])
    await keys.page.locator(".editor-instance .monaco-editor.focused").wait_for()


async def _casts(keys: Keyboard) -> None:
    """The two boxes of a cast, the list of ranks, and the boxes of a release."""
    which, what = "Cast to ranks (1/2): which ranks?", "which command?"
    await keys.command("Ranks: Cast to Ranks")
    await keys.escape(which)
    await keys.command("Ranks: Cast to Ranks")
    await keys.choose(which, "stopped")
    await keys.escape(what)
    await keys.command("Ranks: Cast to Ranks")
    await keys.answer(which, "1-2")
    await keys.answer(what, "p step")
    await _writes(keys, "cast 1-2 p step")
    await keys.command("Ranks: List Ranks")
    await _writes(keys, "4 ranks")
    await keys.command("Ranks: Release Ranks")
    await keys.escape("Release ranks: which ones?")
    await keys.command("Ranks: Release Ranks")
    await keys.answer("Release ranks: which ones?", "3")
    await keys.escape("Release rank 3?", DIALOG)


async def _searches_and_names(keys: Keyboard) -> None:
    """The search of the view, and a group of two rows that were selected."""
    window = keys.window
    await keys.command("Ranks: Search Ranks")
    await keys.asked("Search in Ranks")
    await keys.type("2-3")
    await window.stand(f"2 ranks stopped at data_parallel.py:{REDUCE} in train: 2-3")
    await keys.press("Enter")
    await keys.command("Ranks: Clear Search")
    await window.stand(
        f"3 ranks stopped at data_parallel.py:{REDUCE} in train: 1-3", "1 rank pausing: 0"
    )
    await keys.command("Ranks: Search Ranks")
    await keys.escape("Search in Ranks")
    await keys.row("rank 1, stopped")
    await keys.press("Escape")  # nothing is selected any more
    await keys.row("rank 1, stopped")
    await keys.press("Control+Shift+Enter")  # select, and nothing else
    await keys.press("ArrowDown")
    await keys.press("Control+Shift+Enter")
    await keys.choose_in_menu("New Group")
    await keys.escape("Name for ranks 1-2")
    await keys.command("Ranks: New Group")
    await keys.answer("Name for ranks 1-2", "middle")
    await window.told("@middle now means ranks 1-2.")


async def _compares(keys: Keyboard) -> None:
    """The box for the expression, and each part of the page."""
    window = keys.window
    await keys.command("Ranks: Compare Across Ranks")
    await keys.escape("Compare across ranks")
    await keys.command("Ranks: Compare Across Ranks")
    await keys.answer("Compare across ranks", "loss")
    page = await window.webview("#groups tbody tr")
    await keys.tab_in_page(page, "#export")
    await keys.press("Enter")
    await keys.escape("Export the values of all ranks")
    await keys.tab_in_page(page, "#group")
    await keys.press("Enter")
    await keys.answer("Name for rank 2", "odd")
    await window.told("@odd now means rank 2.")
    await keys.press("Control+2")  # the page again
    await keys.tab_in_page(page, ".go")
    await keys.press("Enter")
    await window.becomes(lambda: window.rows(VARIABLES), lambda rows: WRONG in str(rows), "rank 2")
    await keys.row("rank 3, stopped")
    await keys.choose_in_menu("Continue")
    await page.locator("#words", has_text="rank 3 has run on since").wait_for(timeout=LIMIT * 1000)
    await keys.press("Control+2")  # the page again
    await keys.tab_in_page(page, "#again", "Shift+Tab")
    await keys.press("Enter")
    await page.locator("#age").wait_for(state="hidden")


async def _loses_a_rank(keys: Keyboard, server: CodeServer) -> None:
    """The button of the notification, and the release of another rank."""
    window = keys.window
    await keys.row("rank 2, stopped")
    await keys.press("Escape")  # rank 1 is selected too
    await keys.row("rank 2, stopped")
    await keys.choose_in_menu("Release Ranks")
    await keys.press_in_dialog("Release rank 2?", "Release")
    await window.has(RANKS, "2 ranks running: 2-3")  # there is no room for the last rows
    await keys.command("Ranks: List Ranks")
    await _writes(keys, "released")
    os.kill(_rank_process(server, 1), signal.SIGSEGV)
    # Rank 0 was pausing in a call that waited for rank 1; its stop takes the keys once more.
    await window.stands_at(example_line("if not line:"))
    await keys.press_in_toast("rank 1 died: SIGSEGV", "Show Log")
    focused = window.page.locator(f"{CONSOLE} :focus")
    await focused.wait_for(timeout=LIMIT * 1000)


@pytest.mark.rest
async def test_the_first_minutes(
    user: User, own_server: CodeServer, open_window: OpenWindow, free_port: int, quiet: None
) -> None:
    """The walkthrough's buttons, and what is offered where nothing listens."""
    pointing_at(user, free_port)
    window = await open_window(own_server)
    keys = Keyboard(window)
    await window.open_file(EXAMPLE, 1)
    await window.extension()  # its commands are known late
    await keys.put_mouse_away()
    await keys.command("View: Close All Editors")  # else Tab may be typed into one
    await keys.command("dap-mux: Get Started")
    await window.page.locator(".getting-started-step.expanded").wait_for(timeout=LIMIT * 1000)
    await keys.tab_to("Check This Machine")
    await keys.press("Enter")
    await _writes(keys, "problem found:")
    await keys.open_file(EXAMPLE, 1)
    await keys.command("dap-mux: Attach to a Running Session")
    refused = "no dap-mux session is running"
    await keys.press_in_toast(refused, "Try Again")
    await window.page.locator(TOAST, has_text=refused).first.wait_for(timeout=LIMIT * 1000)
    await keys.command("Notifications: Clear All Notifications")
    await _nothing_listens(keys)
    for_long = ["--steps", "1000000"]  # no breakpoint holds them
    runs = [await start(user, EXAMPLE, *for_long, n=2) for _ in range(2)]
    ports = [(await run.session())["port"] for run in runs]
    for run in runs:
        own_server.knows(run.session_path)
    await keys.command("dap-mux: Attach to a Running Session")
    await keys.escape("Attach to which session?")
    await keys.command("dap-mux: Attach to a Running Session")
    await keys.choose("Attach to which session?", f"127.0.0.1:{ports[1]}")
    await _says(keys, "2 ranks · 0 stopped")
    await window.leave()
    await keys.press("F5")
    await keys.press_in_dialog("no session is listening", f"Attach to {ports[1]}")
    await _says(keys, "2 ranks · 0 stopped")
    assert await keys.mouse_presses() == 0
    await window.leave()


async def _nothing_listens(keys: Keyboard) -> None:
    """Each button of the first error but one, which needs a session."""
    message = "no session is listening"
    await keys.press("F5")
    await keys.escape(message, DIALOG)
    await keys.press("F5")
    await keys.press_in_dialog(message, "Start Ranks of This File")
    await keys.escape("How many ranks?")
    await keys.press("F5")
    await keys.press_in_dialog(message, "Wait")
    await keys.press_in_toast("Waiting for a session", "Cancel")
    waiting = keys.page.locator(TOAST, has_text="Waiting for a session")
    await waiting.wait_for(state="hidden")


async def _says(keys: Keyboard, text: str) -> None:
    """Wait until the status bar has an item that reads so."""
    await keys.page.locator(".statusbar-item", has_text=text).first.wait_for(timeout=LIMIT * 1000)


async def _writes(keys: Keyboard, text: str) -> None:
    """Wait until the output panel shows this."""
    lines = keys.page.locator(OUTPUT).first

    async def look() -> str:
        return (await lines.inner_text()).replace("\xa0", " ") if await lines.count() else ""

    await keys.window.becomes(look, lambda seen: text in seen, text)


def _rank_process(server: CodeServer, rank: int) -> int:
    """The process of a rank that was launched from this VS Code."""
    for pid in rank_processes(server):
        if procfs.environ(pid).get("RANK") == str(rank):
            return pid
    raise AssertionError(f"rank {rank} does not run")
