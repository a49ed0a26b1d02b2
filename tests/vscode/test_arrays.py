"""The array viewer by hand, in a real VS Code with four real ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from playwright.async_api import Frame

from tests.support.processes.commands import Command, User
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration, stand
from tests.vscode.workbench import VARIABLES, Row, Window

pytestmark = [*IN_A_WINDOW]
JOB: Final = "job.py"
PROGRAM: Final = """\
import os
import numpy

def work(rank, step):
    numbers = numpy.random.default_rng(rank)
    weight = numbers.standard_normal((512, 640)).astype("float32") + numpy.linspace(0, 3, 640)
    cube = numbers.standard_normal((6, 40, 50)) + step
    if rank == 2:
        cube[3] += 40
    weight[100:140, 300:330] = numpy.nan
    weight[7, 9] = 340268
    return weight, cube

for step in range(3):
    work(int(os.environ["RANK"]), step)
"""
LINE: Final = PROGRAM.splitlines().index("    return weight, cube") + 1


async def in_arrays(
    user: User, server: CodeServer, open_window: OpenWindow
) -> tuple[Window, Command]:
    """A window in which four ranks are stopped where each has two arrays."""
    (user.folder / JOB).write_text(PROGRAM, "utf-8")
    run = await start(user, JOB, n=4)
    name = configuration(user, (await run.session())["port"], type="dap-mux")
    window = await open_window(server)
    await window.toggle_breakpoint(JOB, LINE)
    await window.start(name)
    await stand(run, "stopped", "stopped", "stopped", "stopped")
    await window.stands_at(LINE)
    return window, run


async def viewer_of(window: Window, variable: str) -> Frame:
    """The page that the context menu of a variable opens."""
    await window.variable_menu(variable, "Show Tensor or Array")
    page = await window.webview("#map")
    await page.locator("#shown").wait_for()
    return page


async def test_an_array_is_looked_at_by_keyboard(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """From VARIABLES to the cells that stand out, to each rank as a row, and to the rank."""
    window, run = await in_arrays(user, own_server, open_window)
    page = await viewer_of(window, "weight")
    about = await page.locator("#about").inner_text()
    assert about.startswith("ndarray float64 [512, 640] · min ")
    assert " · max 340268 · " in about
    assert about.endswith(" · NaN 1200 · inf 0")
    keys = (await page.locator("#legend").inner_text()).split("\n")
    assert keys[-2:] == ["beyond: 1", "with NaN: 200"]
    assert await page.locator("#histogram .odd").all_text_contents() == ["1 to 340268"]

    await page.locator("#map").focus()
    assert (await cell(page)).startswith("rows 0–1 · columns 0–2 · max ")
    await page.locator("#map").press("ArrowRight")
    await page.locator("#map").press("ArrowDown")
    assert (await cell(page)).startswith("rows 2–3 · columns 3–5 · max ")
    await page.locator("#map").press("End")
    assert (await cell(page)).startswith("rows 2–3 · columns 639 · max ")
    odd = page.locator("#result .go")
    assert (await odd.all_inner_texts())[0] == "100–101, 300–302"
    await odd.first.press("Enter")
    assert await cell(page) == "rows 100–101 · columns 300–302 · NaN 6"

    await ask(page, "cube[$rank, :, $j]")
    await window.becomes(lambda: axis(page, "rows"), "$rank".__eq__, "each rank is a row")
    assert await page.locator("#axes output").all_inner_texts() == ["all", "all"]
    await odd.first.press("Enter")
    assert (await cell(page)).startswith("{2} · columns ")
    await page.locator("#map").press("Enter")
    await window.becomes(lambda: window.rows(VARIABLES), _is_rank_2, "the variables of rank 2")

    await ask(page, "cube")
    await window.becomes(lambda: axis(page, "columns"), "2".__eq__, "the last dimensions")
    slider = page.locator("#axes input")
    for _ in range(3):
        await slider.press("ArrowRight")
    await window.becomes(page.locator("#about").inner_text, _is_about(36), "index 3, of rank 2")
    await window.control("continue")
    await stand(run, "stopped", "stopped", "stopped", "stopped")
    await window.becomes(page.locator("#about").inner_text, _is_of_step_1, "the next stop")

    await ask(page, "<b>nothing</b>")
    await (
        page.locator("#problem", has_text="SyntaxError")
        .or_(page.locator("#problem", has_text="one expression"))
        .wait_for()
    )
    assert await page.locator("b").count() == 0


async def ask(page: Frame, text: str) -> None:
    await page.locator("#expression").fill(text)
    await page.locator("#expression").press("Enter")


async def axis(page: Frame, which: str) -> str:
    return await page.locator(f"#{which}").input_value()


async def cell(page: Frame) -> str:
    """What is said of the cell that the keyboard is at."""
    return await page.locator("#cell").inner_text()


def _is_rank_2(rows: list[Row]) -> bool:
    return any(row.text.startswith("rank = 2") for row in rows)


def _is_of_step_1(text: str) -> bool:
    """Of rank 2, or of one that has stopped long before it: that one has the focus then."""
    return "min 37." in text or "mean 1.0" in text


def _is_about(least: int) -> Callable[[str], bool]:
    """Whether the smallest number begins so."""
    return lambda text: f"min {least}." in text
