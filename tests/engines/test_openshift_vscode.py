"""The walkthrough of docs/openshift.md in a real VS Code: F5 once, and all four ranks are there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.engines.pod import AFTER, CUDA, GPU, MATMUL, SCRIPT, Pod, finished
from tests.support.commands import User
from tests.vscode.code_server import CodeServer
from tests.vscode.scene import OpenWindow
from tests.vscode.workbench import CONSOLE, VARIABLES, WATCH, Row

pytestmark = [
    pytest.mark.engines,
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="session"),
]
FILE: Final = f"workspace/{SCRIPT}"
NAME: Final = "Python: Remote Attach to Cluster"


@pytest_asyncio.fixture(loop_scope="session")
async def user(tmp_path: Path) -> AsyncIterator[User]:
    somebody = User(tmp_path)
    yield somebody
    await somebody.close()


async def test_the_walkthrough_with_four_ranks_in_one_window(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    pod = Pod(user.folder.parent)
    configured(user, pod, endpoints=[f"localhost:{pod.port}-{pod.port + 3}"])
    async with pod.ranks() as ranks:
        window = await open_window(own_server)
        await window.toggle_breakpoint(FILE, CUDA)
        await window.conditional_breakpoint(FILE, GPU, "ranks(1,3): i == 2")
        await window.toggle_breakpoint(FILE, MATMUL)
        await window.start(NAME)
        await window.shows(*["paused"] * 4)
        await window.stands_at(CUDA)

        await window.see_ranks()
        await window.control("continue")
        await window.stand(two(MATMUL, "0,2"), two(GPU, "1,3"))
        await window.toggle_breakpoint(FILE, GPU)
        await window.logpoint(FILE, GPU, "rank {rank}, GPU {i}: {device_name}")
        await window.console("cast ranks(1,3) p i")
        await window.has(CONSOLE, "{1,3}: 2")
        await window.console("cast ranks(1,3) continue")
        await window.has(CONSOLE, "[1] rank 1, GPU 3: CPU", "[3] rank 3, GPU 3: CPU")

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
        await window.expand(VARIABLES, "z, value")
        await window.scroll_to(VARIABLES, "device = device(type='cpu')")
        await window.scroll_to(VARIABLES, "dtype = torch.float32")
        await window.scroll_to(VARIABLES, "shape = torch.Size([1000, 1000])")
        await window.leave()
        await finished(ranks)


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


def configured(user: User, pod: Pod, **reach: Any) -> None:
    """Write the page's launch configuration; `reach` says where the ranks are."""
    mapping = {"localRoot": "${workspaceFolder}/workspace", "remoteRoot": str(pod.remote)}
    one = {"name": NAME, "type": "dap-mux", "request": "attach", **reach}
    one |= {"pathMappings": [mapping], "justMyCode": False}
    (user.folder / ".vscode").mkdir()
    text = json.dumps({"version": "0.2.0", "configurations": [one]}, indent=2)
    (user.folder / ".vscode/launch.json").write_text(text, "utf-8")
