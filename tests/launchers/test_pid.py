"""`pid:`: four running processes that were never started for debugging.

By gdb or lldb, whichever works here, and by `sys.remote_exec` where a Python 3.14 is installed.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.launchers import tour
from tests.launchers.pages import ours, typed
from tests.real.driving import joined
from tests.support.processes.commands import LIMIT, Command, User, listed
from tests.support.processes.native_debuggers import path_with
from tests.support.processes.proc_net import free_ports
from tests.support.processes.waiting import until

pytestmark = pytest.mark.timeout(240)
PYTHONS: Final = [sys.executable, *filter(None, [shutil.which("python3.14")])]
# It computes nothing before it is told to, so that none of its steps is missed; and it waits in the
# kernel: a process that gdb meets while it works may not survive that.
GATE: Final = """\
import runpy, sys

sys.argv = sys.argv[1:]
print("waits", flush=True)
sys.stdin.read()
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Job:
    """Four ranks that wait for the end of their input."""

    def __init__(self, user: User, python: str) -> None:
        self.logs = [user.folder / f"rank-{rank}.log" for rank in range(tour.RANKS)]
        words = [python, user.script(GATE, "gate.py"), str(tour.PROGRAM)]
        shared = {
            **user.environ,
            "WORLD_SIZE": str(tour.RANKS),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_ports(1)),
        }
        self.ranks = [
            self._start([*words, *tour.OPTIONS], {**shared, "RANK": str(rank)}, log)
            for rank, log in enumerate(self.logs)
        ]

    def _start(self, words: list[str], env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            return subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=out, stderr=out)

    def go(self) -> None:
        """Let them compute."""
        for rank in self.ranks:
            assert rank.stdin
            rank.stdin.close()

    @property
    def output(self) -> str:
        return "".join(log.read_text("utf-8") for log in self.logs)

    @property
    def pids(self) -> str:
        """Not in the order of their numbers: those come from each one's environment."""
        return ",".join(str(rank.pid) for rank in reversed(self.ranks))

    def has_ended(self) -> bool:
        return all(rank.poll() is not None for rank in self.ranks)


@contextmanager
def started(user: User, python: str) -> Iterator[Job]:
    job = Job(user, python)
    try:
        yield job
    finally:
        for rank in job.ranks:
            rank.kill()
            rank.communicate()


async def attached(user: User, job: Job) -> Command:
    """It serves once debugpy is in all of them: gdb takes its time."""
    _, words = typed("hosts.md", 2)
    attach = await user.start(*ours(words, "4711,4712,4713,4714", job.pids))
    await until(
        lambda: attach.session_path.exists() or attach.process.returncode is not None,
        within=4 * LIMIT,
        what="debugpy in four processes",
    )
    ended = [rank.poll() for rank in job.ranks]
    assert attach.process.returncode is None, (attach.err, ended, job.output)
    return attach


async def released(attach: Command) -> None:
    """Its session has ended, by the word that a terminal's Ctrl-C is."""
    attach.process.terminate()
    assert (await attach.ends()).code == 0


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: Path(path).name)
async def test_four_running_processes(user: User, python: str) -> None:
    if shutil.which("gdb") is None and shutil.which("lldb") is None:
        pytest.skip("no native debugger is here: tests/launchers/install gdb lldb")
    with started(user, python) as job:
        await until(lambda: job.output.count("waits") == tour.RANKS, within=LIMIT, what="4 wait")
        first = await attached(user, job)
        await released(first)  # debugpy is left in them, and has to be found again
        attach = await attached(user, job)
        client = await attach.client()
        await tour.attach(client, str(tour.PROGRAM))
        # Who is not attached yet has no breakpoint yet, and `attach` waits for nobody.
        await listed(client, "state", *["running"] * tour.RANKS, within=2 * LIMIT)
        job.go()
        await tour.two_held(client)
        await tour.ask_and_step(client)
        await tour.let_go(client)
        await until(job.has_ended, within=2 * LIMIT, what="the job ends")
        assert [rank.returncode for rank in job.ranks] == [0] * tour.RANKS, job.output
        tour.check_result(job.output)
        assert (await attach.ends()).code == 0


# One that waits in the kernel as most stuck jobs do, and has nothing to say but how it ended.
WAITS: Final = """\
import select, sys
print("waits", flush=True)
select.select([sys.stdin], [], [])
answer = 42
print("went on", answer, flush=True)
"""
CANNOT_WRITE: Final = "Couldn't write extended state status: Invalid argument."


@contextmanager
def one_that_waits(user: User) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    words = [sys.executable, user.script(WAITS)]
    with subprocess.Popen(words, env=user.environ, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "waits\n"
            yield process
        finally:
            process.kill()


def goes_on(process: subprocess.Popen[str]) -> None:
    """It was not harmed: it is still asleep, and what it does afterwards is right."""
    out, _ = process.communicate("\n", timeout=LIMIT)
    assert (out, process.returncode) == ("went on 42\n", 0)


async def test_two_sessions_at_once(user: User) -> None:
    """A port that both have seen free was taken by one, before the other's debugpy was in."""
    if shutil.which("gdb") is None and shutil.which("lldb") is None:
        pytest.skip("no native debugger is here: tests/launchers/install gdb lldb")
    with one_that_waits(user) as one, one_that_waits(user) as other:
        sessions = [await user.start("attach", f"pid:{each.pid}") for each in (one, other)]
        for session, process in zip(sessions, (one, other), strict=True):
            client = await joined(session, timeout=2 * LIMIT)
            (entry,) = await listed(client, "state", "running", within=2 * LIMIT)
            assert entry["pid"] == process.pid
            await client.disconnect()
            await released(session)
        goes_on(one)
        goes_on(other)


async def test_lldb_goes_in_where_gdb_cannot_write_registers(user: User, tmp_path: Path) -> None:
    path = path_with(tmp_path / "bin", "failing-gdb", "lldb")
    with one_that_waits(user) as process:
        attach = await user.start("attach", f"pid:{process.pid}", env={"PATH": path})
        program = user.folder / "train.py"
        client = await joined(attach, {str(program): [{"line": 5}]}, attach={}, timeout=2 * LIMIT)
        await listed(client, "state", "running", within=2 * LIMIT)
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
        stopped = await client.wait_event("stopped", timeout=LIMIT)
        assert stopped["reason"] == "breakpoint"
        await client.request("continue", {"threadId": stopped["threadId"]}, timeout=LIMIT)
        goes_on(process)


@pytest.mark.parametrize(
    ("there", "why"),
    [
        (
            ["failing-gdb"],
            rf"gdb does not work on this machine \({CANNOT_WRITE}\) and lldb is not install",
        ),
        ([], "neither gdb nor lldb is installed"),
    ],
    ids=["gdb-fails", "none"],
)
async def test_refused_without_a_debugger_that_works(
    user: User, tmp_path: Path, there: list[str], why: str
) -> None:
    env = {"PATH": path_with(tmp_path / "bin", *there)}
    with one_that_waits(user) as process:
        done = await user.does("attach", f"pid:{process.pid}", env=env)
        assert done.code == 1
        assert re.search(why, done.err), done.err
        assert len(done.err) < 500
        looked = await user.does("doctor", f"pid:{process.pid}", "--json", env=env)
        (found,) = json.loads(looked.out)["causes"]
        assert found["cause"] == "process"
        assert re.search(why, found["evidence"][0]), found
        assert any("lldb" in line for line in found["fix"])
        goes_on(process)
