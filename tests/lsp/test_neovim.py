"""A real Neovim, configured by the lines in docs/language-server.md."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.processes.commands import LIMIT, User, line_of, listed, user
from tests.support.processes.run_command import run_words
from tests.support.processes.waiting import until

__all__ = ["user"]

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
TRAIN = """\
import os
import time


def train(rank):
    loss = float("nan") if rank == 2 else 1.5
    for step in range(1_000_000):
        time.sleep(0.01)
        loss = loss + 0  # here


train(int(os.environ["RANK"]))
"""


def neovim() -> str | None:
    """A Neovim that is new enough; `tests/lsp/install-neovim` brings one."""
    for command in ("nvim", str(ROOT / ".cache/neovim/nvim")):
        if shutil.which(command):
            said = subprocess.run(
                [command, "--version"], capture_output=True, text=True, check=False
            )
            if re.match(r"NVIM v(0\.[1-9]\d|[1-9])", said.stdout):
                return command
    return None


NVIM = neovim()
pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(180),
    pytest.mark.skipif(NVIM is None, reason="no Neovim: run tests/lsp/install-neovim"),
]


def configured(folder: Path) -> Path:
    """The lines of the page as init.lua."""
    page = (ROOT / "docs/language-server.md").read_text("utf-8")
    [lines] = re.findall(r"^```lua\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert lines.count("\n") == 2, "two lines of configuration"
    init = folder / "init.lua"
    init.write_text(lines, "utf-8")
    return init


async def shown(user: User, **variables: str | Path | int) -> dict[str, Any]:
    """What Neovim shows, by its own report."""
    assert NVIM is not None
    report, door = user.folder / "report.json", user.folder / "nvim.sock"
    environ = user.environ | {name: str(value) for name, value in variables.items()}
    environ |= {"REPORT": str(report), "INIT": str(configured(user.folder))}
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    listen = ["--clean", "--headless", "--listen", str(door)]
    process = await asyncio.create_subprocess_exec(
        NVIM, *listen, cwd=user.folder, env=environ, stdin=asyncio.subprocess.DEVNULL
    )
    try:
        await until(lambda: listens(door), within=LIMIT, what="Neovim's socket")
        async with screen(door, f"luafile {HERE / 'neovim.lua'}"):
            await asyncio.wait_for(process.wait(), 4 * LIMIT)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    log = user.folder.parent / ".local/state/nvim/lsp.log"
    assert not log.exists() or "ERROR" not in log.read_text("utf-8"), log.read_text("utf-8")
    told: dict[str, Any] = json.loads(report.read_text("utf-8"))
    return told


def listens(path: Path) -> bool:
    """Whether somebody takes connections there; the file is there a moment before."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@asynccontextmanager
async def screen(door: Path, command: str) -> AsyncIterator[None]:
    """Be a terminal for Neovim, which draws for nobody else, and type a command."""
    reader, writer = await asyncio.open_unix_connection(str(door))
    for number, call in enumerate(
        (("nvim_ui_attach", [120, 40, {"ext_messages": True}]), ("nvim_command", [command]))
    ):
        writer.write(msgspec.msgpack.encode([0, number, *call]))
    drawing = asyncio.create_task(reader.read())
    try:
        yield
    finally:
        drawing.cancel()
        await asyncio.wait([drawing])
        writer.close()


async def test_hints_hover_problems_and_lenses(user: User) -> None:
    path = user.script(TRAIN)
    here = line_of(path, "here")
    run = await user.start(*run_words(path, n=4))
    client = await run.client()
    lines: list[Any] = [here, {"line": 2, "condition": "ranks(ddp=1): x"}]
    await client.handshake({"justMyCode": False}, breakpoints={path: lines})
    row = (await listed(client, "line", *[here] * 4))[1]["threadId"]
    await client.request("setBreakpoints", at(path, *lines[1:]), timeout=LIMIT)
    await client.request("next", {"threadId": row, "singleThread": True}, timeout=LIMIT)
    await listed(client, "line", here, here - 2, here, here)

    told = await shown(user, PROGRAM=path, LINE=here, WORD="loss", OTHER=here - 2)
    assert "failure" not in told, "\n".join([told["failure"], *told["screen"]])
    loop, step = "for step in range(1_000_000):", "loss = loss + 0  # here"
    assert told["marks"] == {loop: "● 1", step: "● 0,2-3"}
    assert [line for line in told["hover"] if not line.startswith("```")] == [
        "loss",
        "  ⚠ {2}: nan",
        "  {0-1,3}: 1.5",
    ]
    assert "breakpoint: " in told["problem"]
    [(code, mark)] = told["after"].items()
    assert (code, mark.removesuffix(" Run all here")) == (loop, "● 0-3")
    await listed(client, "line", *[here - 2] * 4)
    run.process.terminate()


def at(path: str, *lines: Any) -> dict[str, Any]:
    """The arguments of `setBreakpoints`."""
    wanted = [one if isinstance(one, dict) else {"line": one} for one in lines]
    return {"source": {"path": path}, "breakpoints": wanted}
