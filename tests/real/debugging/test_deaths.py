"""Ranks that die, or are held at a failure with nobody attached: what the session says of them."""

from __future__ import annotations

import os
import re
import signal

import anyio
import anyio.lowlevel
import pytest

from dap_mux.client import DapClient
from tests.real.command_line.launched_job import launch
from tests.real.driving import joined, observing
from tests.support.processes.commands import LIMIT, User, line_of, listed
from tests.support.processes.launchers import LAUNCH
from tests.support.processes.run_command import start

pytestmark = [pytest.mark.real, pytest.mark.slow]

# Rank 0 crashes as a library in C does, rank 1 fails; both wait for a word first.
DIES = """\
import os
import time
from pathlib import Path

rank = int(os.environ["RANK"])
while not Path("go").exists():
    time.sleep(0.01)  # wait
while rank == 0 and Path("calm").exists():
    time.sleep(0.01)
if rank == 0:
    os.abort()
raise NotImplementedError("no such layer")  # fails
"""
HELD = re.compile(r"failed: NotImplementedError at train\.py:12, held, \d+ s left")
HOLDS = {"DAP_MUX_POST_MORTEM": "60"}


async def test_held_with_nobody_attached(user: User) -> None:
    run = await start(user, "--no-wait", user.script(DIES), n=2, **HOLDS)
    client = await observing(run)
    (user.folder / "go").touch()
    await held(client, "exited", "waiting")
    entries = await listed(client, "state", "exited", "waiting")
    assert entries[0]["reason"] == "SIGABRT (6)"
    await run.says("rank 0 died: SIGABRT (6)")
    await client.disconnect()


async def test_a_launchers_rank_is_held(user: User) -> None:
    script, launcher = user.script(DIES), user.script(LAUNCH, "launch.py")
    (user.folder / "calm").touch()
    run = await launch(user, launcher, "2", script, options=("--no-wait",), **HOLDS)
    client = await observing(run)
    (user.folder / "go").touch()
    await held(client, "waiting", "waiting")
    await client.disconnect()


async def held(client: DapClient, *states: str) -> None:
    """Wait until rank 1 is held."""
    with anyio.fail_after(LIMIT):
        while not HELD.fullmatch(str((await listed(client, "state", *states))[1]["reason"])):
            await anyio.lowlevel.checkpoint()  # `listed` has asked anew


async def test_killed_while_stopped(user: User) -> None:
    """A line on the terminal and in the debug console, with where it was."""
    script = user.script(DIES)
    run = await start(user, script, n=2)
    wait = line_of(script, "wait")
    client = await joined(run, {script: [wait]})
    entries = await listed(client, "line", wait, wait)
    os.kill(entries[1]["pid"], signal.SIGKILL)
    said = f"rank 1 died: SIGKILL (9), not sent by dap-mux; last stopped at train.py:{wait} in "
    await run.says(said)
    await client.wait_event("output", lambda body: said in body["output"], timeout=LIMIT)
    entries = await listed(client, "state", "stopped", "exited")
    assert entries[1]["reason"] == "SIGKILL (9), not sent by dap-mux"
    await client.disconnect()
