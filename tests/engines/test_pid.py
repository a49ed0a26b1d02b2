"""`pid:`: four running processes that were never started for debugging.

By gdb, and by `sys.remote_exec` where a Python 3.14 is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.engines import tour
from tests.engines.pages import ours, typed
from tests.engines.tools import command
from tests.support.commands import LIMIT, Command, User, listed, user
from tests.support.proc_net import free_ports
from tests.support.waiting import until

__all__ = ["user"]

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
    command("gdb")
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
