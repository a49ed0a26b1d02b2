"""How `dap-mux run` ends a job, or never starts it: signals, clients, mistakes."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.real.driving import joined
from tests.support.clients.jobs import held, serving
from tests.support.combinations import rest
from tests.support.processes.commands import LIMIT, User, bodies, line_of, listed
from tests.support.processes.run_command import WAIT, listening, start

pytestmark = [pytest.mark.real, pytest.mark.heavy]

WAITS, WAITS_FROM = "ranks wait for a debugger", 5  # of the ten moments
STARTED, RELEASED = 10.0, 3.0  # s; of a Python on a busy machine, and until a rank runs on
LATER = """\
import os
import subprocess
import sys
import time
from pathlib import Path

while not Path("go").exists():
    time.sleep(0.01)
ranks = []
for rank in range(3):
    variables = {"RANK": str(rank), "WORLD_SIZE": "3"}
    ranks.append(subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, **variables}))
for rank in ranks:
    rank.wait()
"""
INSTALL = "install it, or activate the environment that has it"
PROMPT = 4.0  # s; 2 for a client's last requests, and the end of our own process
FAMILY = """\
import subprocess
import sys
import time

child = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
subprocess.Popen(child)
print("begin")
while True:
    time.sleep(0.01)  # wait
"""


@pytest.fixture
def no_nohup() -> Iterator[None]:
    """Our commands hear SIGHUP, whatever we have been started under."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("no_nohup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_stops_every_rank_and_its_children(
    user: User, number: signal.Signals
) -> None:
    script = user.script(FAMILY)
    run = await start(user, script, n=2)
    lines = [{"line": line_of(script, "wait"), "condition": "ranks(0):"}]
    client = await joined(run, {script: lines})
    await listed(client, "state", "stopped", "running")
    run.process.send_signal(number)
    await client.wait_event("terminated", timeout=LIMIT)
    await client.disconnect()
    done = await run.ends()
    assert done.code == 128 + number
    assert f"{number.name}: stopping every rank" in done.err
    await user.nothing_is_left()
    assert not list(user.sessions.iterdir())


async def test_ctrl_c_while_the_ranks_wait_for_a_debugger(user: User) -> None:
    run = await start(user, user.script(WAIT), n=2)
    await listening(user, 2)
    run.process.send_signal(signal.SIGINT)
    done = await run.ends()
    assert done.code == 130
    assert "Traceback" not in done.err
    await user.nothing_is_left()


@pytest.mark.parametrize("how", ["disconnect", "terminate"])
async def test_a_client_can_end_the_job(user: User, how: str) -> None:
    run, client = await held(user, user.script(WAIT), "wait", n=2)
    if how == "disconnect":
        await client.disconnect(terminateDebuggee=True)
    else:
        await client.request("terminate", timeout=LIMIT)
        await client.wait_event("terminated", timeout=LIMIT)
        assert bodies(client, "exited") == [{"exitCode": 143}]
        await client.disconnect()
    done = await run.ends()
    assert done.code == 143
    assert "the debugger asked to end the job" in done.err
    await user.nothing_is_left()


@pytest.mark.alone
async def test_a_client_that_does_not_hang_up_is_not_waited_for_long(user: User) -> None:
    """It has 2 s for its last requests, and no more."""
    script = user.script("print('over')\n")
    run = await start(user, script, n=2)
    client = await joined(run)
    await client.wait_event("terminated", timeout=LIMIT)
    began = time.monotonic()
    assert (await run.ends()).code == 0
    assert time.monotonic() - began < PROMPT


async def test_a_client_that_just_leaves_lets_the_job_run_and_another_may_come(user: User) -> None:
    script = user.script(WAIT)
    run, first = await held(user, script, "wait", n=2)
    await first.disconnect(terminateDebuggee=False)

    second = await joined(run, {script: [line_of(script, "wait")]}, name="second")
    await listed(second, "state", "stopped", "stopped")
    await second.disconnect()
    (user.folder / "go").touch()
    done = await run.ends()
    assert done.code == 0
    assert "[0] end\n" in done.out
    assert "[1] end\n" in done.out


@pytest.mark.parametrize(
    ("words", "code", "sentences"),
    [
        ("-- zz train.py", 2, [f"dap-mux: no program zz in PATH; {INSTALL}\n"]),
        ("--listen 0.0.0.0:0 train.py", 125, ["refused to listen on 0.0.0.0", "port-forward"]),
        ("--listen 192.0.2.1:0 train.py", 125, []),
    ],
)
async def test_what_cannot_be_run_is_a_sentence(
    user: User, words: str, code: int, sentences: list[str]
) -> None:
    """The exit code is one of `run`'s own, because the job may end with any other."""
    user.script("")
    done = await user.does("run", *words.split())
    assert (done.code, done.out) == (code, "")
    assert done.err.count("\n") == 1
    assert done.err.startswith("dap-mux: ")
    assert all(each in done.err for each in sentences)
    assert not user.processes()


async def test_a_syntax_error_is_shown_as_python_shows_it(user: User) -> None:
    run = await start(user, "--no-wait", user.script("x = (\n"), n=2)
    done = await run.ends()
    assert done.code == 1
    for rank in range(2):
        assert f"[{rank}] SyntaxError: '(' was never closed\n" in done.out
    assert "dap_mux" not in done.out
    assert "Traceback" not in done.out + done.err
    assert "dap-mux: ranks 0-1 exited with 1\n" in done.err


async def test_ranks_that_end_before_they_listen(user: User) -> None:
    user.script(
        "import os\nif 'RANK' in os.environ: print('no licence'); os._exit(7)\n", "sitecustomize.py"
    )
    run = await start(user, user.script(""), n=2, PYTHONPATH=str(user.folder))
    done = await run.ends()
    assert done.code == 7
    assert "rank 0 exited with 7 before it listened for a debugger" in done.err
    assert "no licence" in done.err
    assert "dap-mux: ranks 0-1 exited with 7\n" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("options", [rest(()), ("--dial",)], ids=["ranks-listen", "ranks-call"])
async def test_killed_before_a_client_came_it_leaves_no_rank_waiting(
    user: User, options: tuple[str, ...]
) -> None:
    """At ten moments, from before it has a rank until after that waits, no rank waits for long."""
    script = user.script("import sys, time\nopen('began', 'w').write(str(time.monotonic()))\n")
    for moment in range(10):
        run = await serving(user, *options, script, n=1)
        if moment >= WAITS_FROM:
            await run.says(WAITS)
        with suppress(ProcessLookupError):
            await asyncio.sleep(0.1 * moment)  # what is then is another thing on each machine
            run.process.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        await run.process.wait()
        await user.nothing_is_left(within=STARTED + RELEASED)
        if moment >= WAITS_FROM:
            assert float((user.folder / "began").read_text("utf-8")) - killed <= RELEASED
            (user.folder / "began").unlink()


async def test_ranks_that_come_after_the_last_client_has_left(user: User) -> None:
    """Nobody would come for them: the one that is there, and those that come later, run on."""
    launcher = user.script(LATER, "launch.py")
    run = await user.start("run", "--", sys.executable, launcher, user.script("print('end')\n"))
    client = await joined(run)
    await client.disconnect(terminateDebuggee=False)
    (user.folder / "go").touch()
    done = await run.ends()
    assert (done.code, done.out.count("end")) == (0, 3)


async def test_a_file_that_cannot_be_written_leaves_the_jobs_exit_code(user: User) -> None:
    path = str(user.folder / "missing" / "end.json")
    run = await start(
        user, "--no-wait", "--end-json", path, user.script("raise SystemExit(7)"), n=1
    )
    done = await run.ends()
    assert (done.code, f"--end-json {path}: No such file" in done.err) == (7, True), done
