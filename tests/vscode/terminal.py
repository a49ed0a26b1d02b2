"""Jobs that are started in a terminal of VS Code."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import suppress
from typing import Final

from dap_mux.system import procfs
from tests.vscode.code_server import CodeServer
from tests.vscode.editing import LIMIT
from tests.vscode.scene import EXAMPLE
from tests.vscode.workbench import Window

PROMPTS: Final = ("$", "#")
# A shell has a PATH of its own: what is not there is named.
RUN: Final = f"{sys.executable} -m dap_mux run -n 2 --listen 127.0.0.1:0 {EXAMPLE}"


async def in_terminal(window: Window, line: str) -> None:
    """Type it once the shell has its prompt, and see that it came there: focus may have moved."""
    await window.command("Terminal: Create New Terminal")
    terminal = window.page.locator(".terminal-wrapper.active").first

    async def text() -> str:
        return re.sub(r"\s", "", await terminal.locator(".xterm-rows").inner_text())

    await window.becomes(text, lambda shown: shown.endswith(PROMPTS), "a prompt")
    await terminal.locator(".xterm-helper-textarea").focus(timeout=LIMIT * 1000)
    await window.page.keyboard.insert_text(line)
    await window.becomes(text, lambda shown: shown.endswith(line[-20:]), "the line typed")
    await window.page.keyboard.press("Enter")


def rank_processes(server: CodeServer) -> list[int]:
    """The processes of ranks that were started from this VS Code."""
    commands = {pid: procfs.command_line(pid) or () for pid in server.processes()}
    return [pid for pid, command in commands.items() if "dap_mux.rank" in command]


async def run_to_their_end(window: Window, server: CodeServer) -> None:
    """Wait until no rank of these is left, and end none."""

    async def left() -> list[int]:
        return rank_processes(server)

    await window.becomes(left, [].__eq__, "every rank has ended")


async def end_jobs(window: Window, server: CodeServer) -> None:
    """End what was started in terminals of this VS Code, and wait until it is gone."""
    for pid in rank_processes(server):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    async def left() -> list[int]:
        commands = {pid: {*(procfs.command_line(pid) or ())} for pid in server.processes()}
        return [pid for pid, command in commands.items() if {"dap_mux", "run"} <= command]

    await window.becomes(left, [].__eq__, "no job is left")
