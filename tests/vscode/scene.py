"""What the tests in VS Code work on: the example, and the repository's own launch.json."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.real.driving import observing
from tests.support.processes.commands import LIMIT, Command, User, listed
from tests.support.processes.run_command import start
from tests.vscode.code_server import CodeServer
from tests.vscode.workbench import Window

REPOSITORY: Final = Path(__file__).resolve().parents[2]
EXAMPLE: Final = "examples/data_parallel.py"
OpenWindow = Callable[..., Awaitable[Window]]
IN_A_WINDOW: Final = [
    pytest.mark.alone,
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="session"),
]


def copied_example(user: User) -> None:
    """Put the example where the user works."""
    shutil.copytree(REPOSITORY / "examples", user.folder / "examples")


def configuration(user: User, port: int, **changed: Any) -> str:
    """Put the repository's own launch.json, with the session's port, where the user works."""
    text = (REPOSITORY / ".vscode/launch.json").read_text("utf-8")
    launch = json.loads(text)
    session = launch["configurations"][0]
    session["connect"]["port"] = port
    session.update(changed)
    (user.folder / ".vscode").mkdir(exist_ok=True)
    (user.folder / ".vscode/launch.json").write_text(json.dumps(launch, indent=2), "utf-8")
    name: str = session["name"]
    return name


def launch_json(user: User, *configurations: dict[str, Any]) -> Path:
    """Put a launch.json with these, of type `dap-mux`, where the user works."""
    path = user.folder / ".vscode/launch.json"
    path.parent.mkdir()
    ours = [{"type": "dap-mux", **one} for one in configurations]
    path.write_text(json.dumps({"version": "0.2.0", "configurations": ours}, indent=2), "utf-8")
    return path


def pointing_at(user: User, port: int) -> str:
    """Put a configuration where the user works that points at this port, and return its name."""
    connect = {"host": "localhost", "port": port}
    name = "Remote Attach to Cluster"
    one = {"name": name, "request": "attach", "connect": connect, "python": sys.executable}
    launch_json(user, one)
    return name


def mappings(launch: Path) -> list[dict[str, str]]:
    """The path mappings of a launch.json's first configuration; none while it is being written."""
    try:
        one = json.loads(launch.read_text("utf-8"))["configurations"][0]
    except ValueError:
        return []
    found: list[dict[str, str]] = one["pathMappings"]
    return found


def example_line(mark: str) -> int:
    """The number of the example's only line that contains this."""
    lines = (REPOSITORY / EXAMPLE).read_text("utf-8").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if mark in line)
    return found


REDUCE: Final = example_line("a good line for a breakpoint")


async def stopped(
    user: User, server: CodeServer, open_window: OpenWindow, type: str, condition: str = ""
) -> tuple[Window, Command]:
    """A window in which four ranks stand at a breakpoint that was set with F9, or as typed."""
    run = await start(user, EXAMPLE, n=4)
    name = configuration(user, (await run.session())["port"], type=type)
    window = await open_window(server)
    if condition:
        await window.conditional_breakpoint(EXAMPLE, REDUCE, condition)
    else:
        await window.toggle_breakpoint(EXAMPLE, REDUCE)
    await window.start(name)
    await stand(run, "stopped", "stopped", "stopped", "stopped")
    await window.shows("paused", "paused", "paused", "paused")
    await window.stands_at(REDUCE)
    return window, run


async def stand(run: Command, *states: str) -> None:
    """Wait until the ranks are in these states, as their session knows them.

    A window may show so a moment too early: of a stop it hears first that all stand, and then of
    one rank after the other that it runs.
    """
    client = await observing(run)
    await listed(client, "state", *states, within=2 * LIMIT)
    await client.disconnect()
