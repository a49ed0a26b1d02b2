"""The walkthrough of docs/openshift.md in a real VS Code: F5, a pod, and four ranks are there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.launchers.kube_scene import NEEDS_PODS
from tests.launchers.pod import AFTER, CUDA, GPU, MATMUL, NAMESPACE, POD, SCRIPT, Pod, walkthrough
from tests.support.processes.commands import User
from tests.vscode.code_server import CodeServer, Missing, chromium, entry, serving
from tests.vscode.conftest import PACKAGE
from tests.vscode.keyboard import Keyboard
from tests.vscode.scene import OpenWindow
from tests.vscode.workbench import CONSOLE, VARIABLES, WATCH, Row, Window, browsing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(480),
    pytest.mark.asyncio(loop_scope="session"),
    NEEDS_PODS,
]
FILE: Final = f"workspace/{SCRIPT}"


@pytest_asyncio.fixture(loop_scope="session")
async def user(tmp_path: Path) -> AsyncIterator[User]:
    somebody = User(tmp_path)
    yield somebody
    await somebody.close()


@pytest_asyncio.fixture(loop_scope="session")
async def pod(user: User) -> AsyncIterator[Pod]:
    """From here on everything runs in a network of its own, VS Code and its browser too."""
    try:
        entry()
    except Missing as why:
        pytest.skip(str(why))
    async with walkthrough(user) as there:
        yield there


@pytest_asyncio.fixture(loop_scope="session")
async def browser(pod: Pod) -> AsyncIterator[Browser]:
    async with browsing(chromium()) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def own_server(
    pod: Pod, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[CodeServer]:
    """VS Code with our package, whose kubectl leads to the cluster."""
    monkeypatch.setenv("KUBECONFIG", pod.user.environ["KUBECONFIG"])
    async with serving(tmp_path / "own", packages=[PACKAGE]) as server:
        yield server


async def test_the_walkthrough_with_four_ranks_in_one_window(
    pod: Pod, own_server: CodeServer, open_window: OpenWindow
) -> None:
    name = configured(pod)
    async with pod.ranks() as ranks:
        window = await open_window(own_server)
        await window.toggle_breakpoint(FILE, CUDA)
        await window.conditional_breakpoint(FILE, GPU, "ranks(1,3): i == 2")
        await window.toggle_breakpoint(FILE, MATMUL)
        await nobody_is_logged_in(pod, window, name)
        await started(window, name)
        await window.shows(*["paused"] * 4)
        await window.stands_at(CUDA)

        await window.see_ranks()
        await window.stand(four(CUDA))  # CALL STACK says of all that they stand, and then who runs
        await window.control("continue")
        await window.stand(two(MATMUL, "0,2"), two(GPU, "1,3"))
        await window.toggle_breakpoint(FILE, GPU)
        await window.logpoint(FILE, GPU, "rank {rank}, GPU {i}: {device_name}")
        await window.console("cast ranks(1,3) p i")
        await window.has(CONSOLE, "{1,3}: 2")
        await window.console("cast ranks(1,3) continue")
        logged = (f"[{rank}] rank {rank}, GPU 3: CPU {SCRIPT}:{GPU}" for rank in (1, 3))
        await window.has(CONSOLE, *logged)

        await window.stand(four(MATMUL))
        await window.watch("x.shape", "x.is_cuda", "z[0, 0:5]")
        await window.has(WATCH, "x.shape = torch.Size([1000, 1000])", "x.is_cuda = False")
        await window.page.keyboard.press("F10")
        await window.stand(four(AFTER))
        await window.stands_at(AFTER)
        await window.becomes(lambda: window.rows(WATCH), has_product, "first elements of z")
        await window.console("cast all p z[0, 0].item()")
        await window.has(CONSOLE, "{0}: 1000.0 | {1}: 2000.0 | {2}: 3000.0 | {3}: 4000.0")
        await window.expand(VARIABLES, "Scope Locals")
        await window.scroll_to(VARIABLES, "z = ")
        await window.expand(VARIABLES, "z, value")
        await window.scroll_to(VARIABLES, "device = device(type='cpu')")
        await window.scroll_to(VARIABLES, "dtype = torch.float32")
        await window.scroll_to(VARIABLES, "shape = torch.Size([1000, 1000])")
        await window.leave()
        await ranks.finished()
        await window.becomes(lambda: forwards(pod), lambda count: count == 0, "no forward is open")


def has_product(rows: list[Row]) -> bool:
    """The expression of the page shows the product of the rank that is looked at."""
    products = (", ".join([f"{1000 * (rank + 1)}."] * 5) for rank in range(4))
    return bool({row.text for row in rows} & {f"z[0, 0:5] = tensor([{row}])" for row in products})


def two(line: int, ranks: str) -> str:
    """A row of the view Ranks."""
    return f"2 ranks stopped at {SCRIPT}:{line} in <module>: {ranks}"


def four(line: int) -> str:
    """The same where all stand together."""
    return f"4 ranks stopped at {SCRIPT}:{line} in <module>: 0-3"


def configured(pod: Pod) -> str:
    """Put the page's launch configuration where VS Code looks."""
    (pod.user.folder / ".vscode").mkdir()
    text = json.dumps({"version": "0.2.0", "configurations": [pod.configuration]}, indent=2)
    (pod.user.folder / ".vscode/launch.json").write_text(text, "utf-8")
    return str(pod.configuration["name"])


async def nobody_is_logged_in(pod: Pod, window: Window, name: str) -> None:
    """F5 then says what helps, and asks nothing."""
    pod.server.logged_in = False
    await window.pick(f"debug {name}", name)
    toast = window.page.locator(".notification-toast", has_text="kubectl is not logged in").first
    await toast.wait_for()
    assert "Log in with" in await toast.inner_text()
    pod.server.logged_in = True
    await toast.get_by_role("button", name="Try Again").click()
    await Keyboard(window).escape("Namespace")


async def started(window: Window, name: str) -> None:
    """F5, and the questions that come, each left once and then answered by keys alone."""
    keys = Keyboard(window)
    await window.pick(f"debug {name}", name)
    await keys.escape("Namespace")
    await window.pick(f"debug {name}", name)
    await keys.choose("Namespace", NAMESPACE)
    await keys.escape(f"Pod in {NAMESPACE}")
    await window.pick(f"debug {name}", name)
    await keys.choose("Namespace", NAMESPACE)
    await keys.choose(f"Pod in {NAMESPACE}", POD)
    await window.page.locator(".debug-toolbar").wait_for()
    await window.command("View: Show Run and Debug")


async def forwards(pod: Pod) -> int:
    """How many forwards lead into the cluster."""
    return len(pod.server.forwards)
