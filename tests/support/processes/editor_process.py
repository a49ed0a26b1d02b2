"""An editor that has started `dap-mux adapter`, and the program that it debugs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from dap_mux.client import ConnectionLost, DapClient
from tests.support.processes.commands import LIMIT, Command, User, line_of
from tests.support.processes.proc_net import free_ports
from tests.support.processes.ranks import Rank

LOOP = """\
import os
import sys
import time
from pathlib import Path

go = Path(sys.argv[1])
print("begin", os.environ.get("RANK"), os.environ.get("MARK"), os.getcwd(), flush=True)
number = 0
while not go.exists():
    number += 1  # count
    time.sleep(0.01)
print("end", flush=True)
"""
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LOOP


class Editor:
    """An editor, the adapter that it has started, and a program that loops until told."""

    def __init__(
        self, user: User, adapter: Command, text: str = LOOP, *, all_answered: bool = True
    ) -> None:
        self.user = user
        self.adapter = adapter
        self.client = adapter.editor(all_answered=all_answered)
        self.script = user.script(text)
        self.go = user.folder / "go"
        self.line = line_of(self.script, "count")

    def breakpoint(self, condition: str = "") -> dict[str, list[dict[str, Any]]]:
        return {self.script: [{"line": self.line, "condition": condition}]}

    async def launches(self, nproc: int = 2, **more: Any) -> DapClient:
        """Send what a launch configuration says, a breakpoint in the loop, `configurationDone`."""
        arguments = {
            "program": self.script,
            "args": [str(self.go)],
            "nproc": nproc,
            "basePort": free_ports(2 * nproc),
            **more,
        }
        await launch(self.client, arguments, self.breakpoint("number > 0"))
        return self.client

    async def gone(self, *, within: float = LIMIT) -> None:
        """The adapter has ended well, and has said nothing but DAP."""
        done = await self.adapter.ends(within=within)
        assert done.code == 0, done.err
        assert "Traceback" not in done.err
        await self.client.wait_for(lambda: not self.client.open, what="the end of its output")
        assert isinstance(self.client.failure, ConnectionLost), self.client.failure
        assert not self.adapter.session_path.exists()


async def launch(
    client: DapClient,
    arguments: Mapping[str, Any],
    breakpoints: Mapping[str, list[dict[str, Any]]],
) -> None:
    await client.request(
        "initialize", {"adapterID": "dap-mux", "clientID": "vscode"}, timeout=LIMIT
    )
    launched = client.send("launch", arguments)
    await client.wait_event("initialized", timeout=LIMIT)
    for path, wanted in breakpoints.items():
        source = {"source": {"path": path}, "breakpoints": wanted}
        await client.request("setBreakpoints", source, timeout=LIMIT)
    await client.request("configurationDone", timeout=LIMIT)
    assert (await asyncio.wait_for(launched, LIMIT))["success"]


@pytest.fixture
async def editor(user: User) -> Editor:
    return Editor(user, await user.start("adapter", piped=True))


async def finish(editor: Editor, ranks: list[Rank]) -> None:
    """The ranks run to their own end."""
    editor.go.touch()
    for rank in ranks:
        assert await rank.ended() == 0, rank.output
        assert "end" in rank.output
