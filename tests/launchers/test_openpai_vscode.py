"""A job of OpenPAI in a real VS Code: F5, and its four tasks are there."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.launchers import tour
from tests.launchers.openpai_ranks import ROOT, Ranks, in_task, job_command, tasks
from tests.support.openpai_server import TOKEN, OpenPaiServer, openpai_server
from tests.support.processes.commands import User
from tests.support.processes.proc_net import free_ports
from tests.vscode.code_server import CodeServer, Missing, chromium, entry, serving
from tests.vscode.conftest import PACKAGE
from tests.vscode.scene import OpenWindow
from tests.vscode.workbench import CONSOLE, VARIABLES, browsing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(480),
    pytest.mark.asyncio(loop_scope="session"),
]
PAGE: Final = (ROOT / "docs/openpai.md").read_text("utf-8")
PROGRAM: Final = tour.PROGRAM.name


@pytest_asyncio.fixture(loop_scope="session")
async def user(tmp_path: Path) -> AsyncIterator[User]:
    somebody = User(tmp_path)
    yield somebody
    await somebody.close()


@pytest_asyncio.fixture(loop_scope="session")
async def openpai() -> AsyncIterator[OpenPaiServer]:
    async with openpai_server() as made:
        made.token = TOKEN
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def ranks(user: User, openpai: OpenPaiServer) -> AsyncIterator[Ranks]:
    """One of the job's program in each of its four tasks."""
    made = Ranks(user)
    base = free_ports(8)
    openpai.roles["train"] = tasks(base, 4)
    shutil.copy(tour.PROGRAM, user.folder)
    for index in range(4):
        await made.start(job_command(), in_task(index, base))
    await made.listen(4)
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with browsing(chromium()) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CodeServer]:
    """VS Code with our package, started by somebody who has a token."""
    try:
        entry()
    except Missing as why:
        pytest.skip(str(why))
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    monkeypatch.setenv("OPENPAI_TOKEN_FILE", str(file))
    async with serving(tmp_path / "own", packages=[PACKAGE]) as server:
        yield server


def configured(user: User, url: str) -> str:
    """Put the page's launch configuration where VS Code looks; its nodes need no ssh here."""
    (block,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    own = block.replace("https://pai.example.com", url).replace(",ssh", "")
    own = own.replace("${workspaceFolder}/examples", "${workspaceFolder}")
    (user.folder / ".vscode").mkdir()
    text = json.dumps({"version": "0.2.0", "configurations": [json.loads(own)]}, indent=2)
    (user.folder / ".vscode/launch.json").write_text(text, "utf-8")
    return str(json.loads(own)["name"])


@pytest.mark.rest  # of test_openpai.py and test_openshift_vscode.py
async def test_two_tasks_are_held_and_asked(
    user: User,
    openpai: OpenPaiServer,
    ranks: Ranks,
    own_server: CodeServer,
    open_window: OpenWindow,
) -> None:
    name = configured(user, openpai.url)
    window = await open_window(own_server)
    held = tour.line("all_reduce_mean(grad)  #")
    await window.click_gutter(PROGRAM, held)
    await window.pick(f"debug {name}", name)
    await window.shows(*["paused"] * 4)
    await window.stands_at(held)
    await window.console("cast 1,3 p world.rank")
    await window.has(CONSOLE, "{1}: 1 | {3}: 3")
    await window.expand(VARIABLES, "Scope Locals")
    await window.scroll_to(VARIABLES, "steps = 20")
    await window.click_gutter(PROGRAM, held)
    await window.page.keyboard.press("F5")
    assert [await ranks.ends(index) for index in range(4)] == [0] * 4, ranks.output()
    tour.check_result(ranks.output(), steps=20)
