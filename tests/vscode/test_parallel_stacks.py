"""The Parallel Stacks view in a real VS Code: four real ranks, and 512 simulated ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import pytest
from playwright.async_api import Locator
from playwright.async_api import TimeoutError as Late

from dap_mux.engine import Settings
from tests.bench.relay import Relay, relayed
from tests.support.combinations import rest
from tests.support.fake_rank.program import FIRST, SCRIPT
from tests.support.processes.commands import Command, User, line_of
from tests.support.processes.run_command import start
from tests.support.processes.waiting import until
from tests.support.session import session
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT, SOON
from tests.vscode.fake_job import fake_job
from tests.vscode.scene import IN_A_WINDOW, OpenWindow, configuration, stand
from tests.vscode.scripts import MARKS
from tests.vscode.workbench import RANKS, STACKS, VARIABLES, Window

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
MOST_REQUESTS: Final = 10
MANY: Final = 512
TRAIN: Final = """\
import os
import time

rank = int(os.environ["RANK"])


def load(step):
    if rank == 3:
        time.sleep(3600)  # waits
    return rank + step


def train(step):
    loss = load(step)  # calls
    if rank == 2:
        loss *= 21  # apart
    return loss  # here


for step in range(1_000_000):
    train(step)  # begins
"""


@pytest.mark.parametrize("type", [rest("dap-mux"), "debugpy"])
async def test_ranks_that_stand_and_wait_are_one_tree_whose_rows_lead_there(
    user: User, both_server: CodeServer, open_window: OpenWindow, type: str
) -> None:
    """Three ranks stopped at two lines, and one that sleeps, which nobody pauses."""
    path = user.script(TRAIN)
    at = {mark: line_of(path, mark) for mark in ("waits", "calls", "apart", "here", "begins")}
    run = await start(user, "train.py", n=4)
    async with relayed((await run.session())["port"]) as relay:
        window = await _stopped_apart(user, both_server, open_window, run, relay, type)
        await window.see_stacks()
        await window.has(
            STACKS,
            f"<module>, train.py:{at['begins']}, ranks 0-3",
            f"train, train.py:{at['here']}, stopped, ranks 0-1",
            f"train, train.py:{at['apart']}, stopped, rank 2",
            f"train, train.py:{at['calls']}, rank 3",
            f"load, train.py:{at['waits']}, running, rank 3",
        )

        # Also the language server, which looks for a session every two seconds, joins it.
        await until(lambda: "breakpoints" in relay.commands, within=LIMIT, what="it has joined")
        await _quiet(window, lambda: relay.requests)
        apart = f"train, train.py:{at['apart']}"
        await click(window, apart, lambda: _has_focus(window, at["apart"]), relay.forget)
        await window.has(VARIABLES, "loss = 2", inside=["Scope Locals"])
        assert relay.requests <= MOST_REQUESTS, relay.commands

        await click(window, "load, train.py:", lambda: _cursor(window, at["waits"]))
        await click(window, f"train, train.py:{at['here']}", lambda: _has_focus(window, at["here"]))
        module = f"<module>, train.py:{at['begins']}"
        await click(window, module, lambda: _cursor(window, at["begins"]))
        assert await _has_focus(window, at["here"]), "it is on one of the row's ranks already"
        await _menus(window, at["calls"])
        await stand(run, "stopped", "stopped", "stopped", "running")
        await window.leave()


@pytest.mark.rest
async def test_512_ranks_are_two_branches_and_a_click_shows_variables(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """Nothing is asked before the view is open, and a click asks for no more than a stop does."""
    user.script(SCRIPT)
    window = await open_window(own_server)
    async with (
        fake_job(MANY, user.folder / "train.py") as job,
        session(job.ports, settings=Settings()) as running,
    ):
        await window.start(configuration(user, running.port, type="dap-mux", name="many"))
        await until(
            lambda: all(rank.configured for rank in job.ranks), within=LIMIT, what="all attached"
        )
        job.stop(FIRST, {7: FIRST + 2})
        await window.stands_at(FIRST)
        await window.page.locator(f"{RANKS} .monaco-list-row").first.wait_for()
        assert "stacks" not in running.engine.asked, "nobody has looked"
        await window.see_stacks()
        label = f"train, train.py:{FIRST + 2}, stopped, rank 7"
        await window.has(STACKS, label, f"train, train.py:{FIRST}, stopped, ranks 0-6,8-{MANY - 1}")
        asked = running.engine.asked
        await _quiet(window, lambda: len(asked))
        await click(window, label, lambda: _shows(window, "loss = 70"), asked.clear)
        assert len(asked) <= MOST_REQUESTS, asked
        await window.leave()


async def click(
    window: Window,
    label: str,
    done: Callable[[], Awaitable[bool]],
    before: Callable[[], None] = lambda: None,
) -> None:
    """Click a row until that is so: one that is drawn anew swallows the click."""
    row = window.page.locator(f'{STACKS} .monaco-list-row[aria-label^="{label}"]').first
    for _ in range(int(LIMIT)):
        before()
        with suppress(Late):
            await row.click(timeout=SOON)
            if await window.soon(done, bool):
                return
    raise AssertionError(f"a click on {label!r} leads nowhere: {await window.rows(STACKS)}")


async def _stopped_apart(
    user: User,
    server: CodeServer,
    open_window: OpenWindow,
    run: Command,
    relay: Relay,
    type: str,
) -> Window:
    name = configuration(user, relay.port, type=type)
    window = await open_window(server)
    lines = (user.folder / "train.py").read_text("utf-8").splitlines()
    for mark in ("# apart", "# here"):
        (line,) = (number for number, text in enumerate(lines, 1) if mark in text)
        await window.toggle_breakpoint("train.py", line)
    await window.start(name)
    await stand(run, "stopped", "stopped", "stopped", "running")
    await window.shows("paused", "paused", "paused", "running")
    return window


async def _menus(window: Window, calls: int) -> None:
    """Of the branch of a rank that runs, and of one of its frames."""
    await window.context_menu(_row(window, "ranks 0-1"), "New Group…")
    await window.answer("Name for ranks 0-1", "pair")
    await window.told("@pair now means ranks 0-1.")
    await window.context_menu(_row(window, f"train, train.py:{calls}"), "Set Breakpoint Here")
    await window.has(".debug-breakpoints", f"train.py {calls}")
    await window.context_menu(_row(window, "ranks 0-1"), "Copy Rank Set")
    copied = window.page.locator(".statusbar-item", has_text="Copied: 0-1")
    await copied.wait_for()


def _row(window: Window, label: str) -> Locator:
    return window.page.locator(f'{STACKS} .monaco-list-row[aria-label="{label}"]').or_(
        window.page.locator(f'{STACKS} .monaco-list-row[aria-label^="{label},"]')
    )


async def _quiet(window: Window, count: Callable[[], int]) -> None:
    """Wait until the editor has asked nothing more for a while."""

    async def look() -> int:
        return count()

    await window.quiet(look)


async def _has_focus(window: Window, line: int) -> bool:
    marks: dict[str, str] = await window.page.evaluate(MARKS, "focus:")
    return [*marks] == [str(line)]


async def _shows(window: Window, variable: str) -> bool:
    return variable in {row.text for row in await window.rows(VARIABLES)}


async def _cursor(window: Window, line: int) -> bool:
    text = await window.page.locator("#status\\.editor\\.selection").inner_text()
    return text.startswith(f"Ln {line},")
