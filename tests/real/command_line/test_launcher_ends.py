"""How a launcher's job ends or starts again: signals, clients, and a launcher that will not go."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import anyio
import pytest

from dap_mux.client import DapClient
from dap_mux.cluster.launcher import LaunchedJob, LauncherJob
from tests.real.command_line.launched_job import finish, go_on, launch, listening_or_calling
from tests.real.debugging.test_restart import anew
from tests.real.driving import joined, observing
from tests.support.processes.commands import LIMIT, User, bodies, line_of, listed
from tests.support.processes.launchers import LAUNCH
from tests.support.processes.run_command import WAIT
from tests.support.processes.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(120)]

COUNTS = """\
import os, signal, subprocess, sys

def heed(number, frame):
    with open("signals", "a") as file:
        file.write(f"{number}\\n")
    ranks.terminate()

signal.signal(signal.SIGINT, heed)
signal.signal(signal.SIGTERM, heed)
ranks = subprocess.Popen(
    [sys.executable, sys.argv[1]],
    env={**os.environ, "RANK": "0", "WORLD_SIZE": "1"}, start_new_session=True,
)
ranks.wait()
sys.exit(9)
"""


async def all_listen(client: DapClient) -> None:
    """Wait until each rank has said itself that it listens: the first one announces the others."""
    pids: list[int | None] = []
    with anyio.fail_after(LIMIT):
        while not pids or None in pids:
            await anyio.sleep(0.02)
            pids = [entry["pid"] for entry in (await client.request("list"))["ranks"]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_goes_to_the_launcher_once(user: User, number: signal.Signals) -> None:
    script, launcher = user.script(WAIT), user.script(COUNTS, "counts.py")
    run = await launch(user, launcher, script)
    client = await joined(run, {script: [line_of(script, "wait")]})
    await listed(client, "state", "stopped")
    run.process.send_signal(number)
    await finish(client)
    assert bodies(client, "exited") == [{"exitCode": 9}]
    done = await run.ends()
    assert done.code == 128 + number
    assert f"{number.name}: passed on to the launcher" in done.err
    assert (user.folder / "signals").read_text() == f"{number.value}\n"
    await user.nothing_is_left()


async def test_ctrl_c_while_ranks_wait_for_a_debugger(user: User) -> None:
    script, launcher = user.script(WAIT), user.script(LAUNCH, "launch.py")
    run = await launch(user, launcher, "2", script)
    client = await observing(run)
    await all_listen(client)
    await listed(client, "state", "waiting", "waiting")
    await client.disconnect()  # before the session's end, which waits for nobody for ever
    run.process.send_signal(signal.SIGINT)
    done = await run.ends()
    assert done.code == 130
    assert "Fatal Python error" not in done.err
    await user.nothing_is_left()


@listening_or_calling
async def test_a_client_can_end_the_job(user: User, options: tuple[str, ...]) -> None:
    script, launcher = user.script(WAIT), user.script(LAUNCH, "launch.py")
    run = await launch(user, launcher, "2", script, options=options)
    client = await joined(run, {script: [line_of(script, "wait")]})
    await listed(client, "state", "stopped", "stopped")
    await client.request("terminate", timeout=LIMIT)
    await finish(client)
    assert bodies(client, "exited") == [{"exitCode": 143}]
    done = await run.ends()
    assert done.code == 143
    assert "the debugger asked to end the job" in done.err
    await user.nothing_is_left()


@listening_or_calling
async def test_a_client_can_start_it_again(user: User, options: tuple[str, ...]) -> None:
    script, launcher = user.script(WAIT), user.script(LAUNCH, "launch.py")
    run = await launch(user, launcher, "2", script, options=options)
    wait = line_of(script, "wait")
    client = await joined(run, {script: [wait]}, launch=True)
    before = await listed(client, "line", wait, wait)
    await client.request("restart", timeout=LIMIT)
    await run.says("the debugger asked to restart the job")
    after = await anew(client, before, "line", wait)
    assert [entry["threadId"] for entry in after] == [entry["threadId"] for entry in before]
    assert not bodies(client, "terminated")
    (user.folder / "go").touch()
    await go_on(client, after)
    await finish(client)
    assert (await run.ends()).code == 0


async def test_a_client_that_does_not_hang_up(user: User) -> None:
    """Every rank has ended: nothing is said of ranks that run on, nor of the client."""
    script, launcher = user.script("print('end')"), user.script(LAUNCH, "launch.py")
    run = await launch(user, launcher, "1", script)
    client = await joined(run)
    await client.wait_event("terminated", timeout=LIMIT)
    done = await run.ends()
    assert done.code == 0
    assert "without a debugger" not in done.err


@listening_or_calling
async def test_ranks_that_outlive_their_launcher_are_let_go(
    user: User, options: tuple[str, ...]
) -> None:
    script = user.script(WAIT)
    text = "import os, subprocess, sys, time\n"
    text += "subprocess.Popen([sys.executable, sys.argv[1]], env={**os.environ, 'RANK': '0'})\n"
    text += "while not os.path.exists('over'):\n    time.sleep(0.01)\n"
    run = await launch(user, user.script(text, "leaves.py"), script, options=options)
    client = await joined(run, {script: [line_of(script, "wait")]})
    await listed(client, "state", "stopped")
    (user.folder / "over").touch()
    await finish(client)
    done = await run.ends()
    assert done.code == 0
    assert "is still running, and continues without a debugger" in done.err
    (user.folder / "go").touch()
    await user.nothing_is_left()
    assert run.out == "end\n"


async def test_a_launcher_that_does_not_heed_is_killed(tmp_path: Path) -> None:
    stubborn = ("import signal, sys, time; signal.signal(15, signal.SIG_IGN)\n"
                "open(sys.argv[1], 'w').close()\n"
                "while True: time.sleep(1)")  # fmt: skip
    ignores = tmp_path / "ignores"
    job = LauncherJob(command=(sys.executable, "-c", stubborn, str(ignores)))
    async with LaunchedJob(job) as launched:
        await until(ignores.exists, within=LIMIT, what="it heeds nothing")
        await launched.stop(patience=0.2)
        assert await launched.ended() == -signal.SIGKILL
