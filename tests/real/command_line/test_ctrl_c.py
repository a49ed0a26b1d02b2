"""Ctrl-C on a job that does not end: who is waited for, and what ends it at once."""

from __future__ import annotations

import signal

import pytest

from tests.real.command_line.launched_job import launch
from tests.support.processes.commands import LIMIT, User
from tests.support.processes.run_command import start
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.slow]

HANGS = """\
import os, signal, time
from pathlib import Path

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
Path(f"up-{os.environ['RANK']}").touch()
while True:
    time.sleep(1)
"""


# It takes no notice of Ctrl-C, and ends its rank at SIGTERM.
WAITS = """\
import os, signal, subprocess, sys

signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda number, frame: rank.kill())
environ = {**os.environ, "RANK": "0", "WORLD_SIZE": "1"}
rank = subprocess.Popen([sys.executable, sys.argv[1]], env=environ)
rank.wait()
"""


async def test_a_second_one_kills_the_ranks(user: User) -> None:
    run = await start(user, "--no-wait", user.script(HANGS), n=2)
    await up(user, 2)
    run.process.send_signal(signal.SIGINT)
    await run.says("waiting for ranks 0-1 (processes ")
    assert "or at once by another Ctrl-C" in run.err
    run.process.send_signal(signal.SIGINT)
    await run.says("SIGINT: killing every rank")
    done = await run.ends()
    assert done.code == 130
    assert "ranks 0-1 were terminated by SIGKILL" in done.err
    await user.nothing_is_left()


async def test_a_launcher_is_waited_for(user: User) -> None:
    script, launcher = user.script(HANGS), user.script(WAITS, "waits.py")
    run = await launch(user, launcher, script, options=("--no-wait",))
    await up(user, 1)
    run.process.send_signal(signal.SIGINT)
    await run.says("waiting for the launcher (process ")
    assert "and rank 0 (process " in run.err
    run.process.send_signal(signal.SIGTERM)
    assert (await run.ends()).code == 128 + signal.SIGTERM
    await user.nothing_is_left()


async def up(user: User, n: int) -> None:
    """Wait until the programs ignore what they are sent."""
    files = [user.folder / f"up-{rank}" for rank in range(n)]
    await until(lambda: all(file.exists() for file in files), within=LIMIT, what="all are up")
