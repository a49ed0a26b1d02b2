"""The language server in a real VS Code mends the launch.json of ranks that were started there."""

from __future__ import annotations

import shutil
from typing import Final

import pytest

from tests.support.processes.commands import User
from tests.support.processes.proc_net import free_ports
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.scene import EXAMPLE, IN_A_WINDOW, REDUCE, OpenWindow, launch_json, mappings

pytestmark = [*IN_A_WINDOW, pytest.mark.heavy]
NAME: Final = "Ranks"


async def test_a_mapping_that_does_not_fit_is_mended_in_launch_json(
    user: User, own_server: CodeServer, open_window: OpenWindow
) -> None:
    """Another job runs too: the text is about the one that this window has launched."""
    other = await start(user, EXAMPLE, "--steps", "1000000", n=1)
    await other.session()
    own_server.knows(other.session_path)
    node = user.folder.parent / "node"
    shutil.copytree(user.folder / "examples", node / "examples")
    wrong = {"localRoot": "${workspaceFolder}", "remoteRoot": "/nowhere"}
    for_long = ["--steps", "1000000"]  # no breakpoint holds it, and a person takes their time
    where = {"program": str(node / EXAMPLE), "cwd": str(node), "pathMappings": [wrong]}
    ranks = {"args": for_long, "nproc": 2, "basePort": free_ports(4)}
    launch = launch_json(user, {"name": NAME, "request": "launch", **where, **ranks})
    window = await open_window(own_server)
    await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.start(NAME)
    squiggle = window.page.locator(".squiggly-warning, .squiggly-error, .squiggly-info")
    await squiggle.first.wait_for(timeout=LIMIT * 1000)

    right = {"localRoot": "${workspaceFolder}", "remoteRoot": str(node)}
    await window.quick_fix(EXAMPLE, REDUCE, "path mapping", lambda: right in mappings(launch))
