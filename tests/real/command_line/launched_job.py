"""`dap-mux run -- PYTHON ...` in the words of its tests."""

from __future__ import annotations

import sys

import pytest

from dap_mux.client import DapClient
from dap_mux.system import procfs
from tests.support.processes.commands import LIMIT, Command, Json, User
from tests.support.processes.proc_net import free_ports
from tests.support.processes.run_command import resume

ATTACH = {"justMyCode": True}
listening_or_calling = pytest.mark.parametrize(
    "options", [(), ("--dial",)], ids=["ranks-listen", "ranks-call"]
)


async def launch(
    user: User, *words: str, python: str = sys.executable, options: tuple[str, ...] = (), **env: str
) -> Command:
    """Start `run -- PYTHON WORDS`."""
    ports = ["--base-port", str(free_ports(8))]
    return await user.start("run", *ports, *options, "--", python, *words, env=env)


def adapters(user: User) -> int:
    """How many of debugpy's adapters there are."""
    commands = (" ".join(procfs.command_line(pid) or ()) for pid in user.processes())
    return sum("--server-access-token" in command for command in commands)


async def go_on(client: DapClient, entries: list[Json]) -> list[Json]:
    """Look at the first stopped rank, as an editor does, and continue all; the frames seen.

    Where the focus' rank has just ended the session goes to another one, which need not be the
    first that is stopped by now, and for a moment nobody's look takes it from there: ask for it.
    """
    first = next(entry for entry in entries if entry["state"] == "stopped")
    place = {"rank": first["rank"], "group": first["group"]}
    await client.request("focus", place, timeout=LIMIT)
    row = first["threadId"]
    trace = await client.request("stackTrace", {"threadId": row}, timeout=LIMIT)
    frames: list[Json] = trace["stackFrames"]
    await client.request("scopes", {"frameId": frames[0]["id"]}, timeout=LIMIT)
    await resume(client, row)
    return frames


async def finish(client: DapClient) -> None:
    """The job ends by itself."""
    await client.wait_event("terminated", timeout=LIMIT)
    await client.disconnect()
