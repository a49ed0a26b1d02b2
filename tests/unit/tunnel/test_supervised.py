"""Supervised children: real ones, that open, end, hang, and are killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from dap_mux.cluster import tunnel as children
from dap_mux.cluster.tunnel import Supervised, run_command, running_child
from dap_mux.pure.errors import UsageError
from dap_mux.system.procfs import runs
from tests.support.processes.waiting import until

LIMIT = 30.0  # s
OPENS = "print('Open', flush=True); import time; time.sleep(600)"
REFUSES = "import sys; print('no such\\x1b[2Jpod', file=sys.stderr); sys.exit(3)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + OPENS
PARENT = """\
import os, sys, anyio
from dap_mux.cluster.tunnel import lines_of, running_child

async def main():
    async with running_child([sys.executable, "-c", sys.argv[1]]) as child:
        async for line in lines_of(child.stdout):
            print(child.pid, flush=True)

anyio.run(main)
"""


class Keeper:
    """Writes down what it hears."""

    def __init__(self, *programs: str) -> None:
        self._programs = list(programs)
        self.heard: list[str] = []
        self.commands = 0
        self.child = Supervised(self._command, self)

    async def _command(self) -> Sequence[str]:
        self.commands += 1
        program = self._programs[min(self.commands, len(self._programs)) - 1]
        return [sys.executable, "-c", program]

    def said(self, line: str) -> bool:
        return line == "Open"

    def was_up(self, times: int) -> bool:
        return self.heard.count("up") == times

    def up(self) -> None:
        self.heard.append("up")

    def down(self, why: str) -> None:
        self.heard.append(why)


@asynccontextmanager
async def kept(keeper: Keeper) -> AsyncIterator[Keeper]:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keeper.child.run)
        yield keeper
        tasks.cancel_scope.cancel()


async def test_killed_and_started_again() -> None:
    async with kept(Keeper(OPENS)) as keeper:
        for time in (1, 2):
            await until(partial(keeper.was_up, time), within=LIMIT, what="open")
            assert keeper.child.pid
            os.kill(keeper.child.pid, signal.SIGKILL)
        await until(lambda: keeper.heard.count("up") == 3, within=LIMIT, what="open again")
        pid = keeper.child.pid
        assert pid
        assert runs(pid)
    assert not runs(pid)
    name = Path(sys.executable).name
    assert keeper.heard[1] == f"{name} was terminated by SIGKILL"


async def test_what_it_said_last_is_why() -> None:
    """Control characters in it reach no terminal raw."""
    async with kept(Keeper(REFUSES, REFUSES, OPENS)) as keeper:
        await until(lambda: "up" in keeper.heard, within=LIMIT, what="open at the third start")
    name = Path(sys.executable).name
    assert keeper.heard == [f"{name} exited with code 3: no such\\x1b[2Jpod"] * 2 + ["up"]
    assert keeper.commands == 3


def test_back_off() -> None:
    """0.25 s doubling to 10 s, with jitter."""
    limits = [0.25, 0.5, 1, 2, 4, 8, 10, 10]
    pauses = [children.pause_after(failures) for failures in range(8)]
    assert all(0.75 * most <= pause <= most for pause, most in zip(pauses, limits, strict=True))
    assert children.pause_after(10**6) <= 10


async def test_a_child_that_opens_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "OPEN_TIMEOUT_S", 0.2)
    async with kept(Keeper("import time; time.sleep(600)")) as keeper:
        await until(lambda: keeper.heard, within=LIMIT, what="given up")
    assert "did not open a tunnel within 0.2 s" in keeper.heard[0]


async def test_one_that_does_not_listen_to_reason_is_killed() -> None:
    async with kept(Keeper(STUBBORN)) as keeper:
        await until(lambda: keeper.heard, within=LIMIT, what="open")
        pid = keeper.child.pid
        assert pid
    assert not runs(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children of the killed")
async def test_it_does_not_outlive_us_even_if_we_are_killed() -> None:
    async with running_child([sys.executable, "-c", PARENT, OPENS]) as parent:
        assert parent.stdout
        child = int(await parent.stdout.readline())
        assert runs(child)
        parent.kill()
        await until(lambda: not runs(child), within=LIMIT, what="gone with its parent")


async def test_a_program_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="cannot start no-such-program: No such file"):
        await run_command(["no-such-program"])


async def test_a_question_and_its_answer() -> None:
    answer = await run_command([sys.executable, "-c", "print(1)"])
    assert (answer.code, answer.out) == (0, "1\n")
    answer = await run_command([sys.executable, "-c", REFUSES])
    assert (answer.code, answer.why) == (3, "no such\x1b[2Jpod")


async def test_a_question_that_is_not_answered() -> None:
    with pytest.raises(UsageError, match=r"no response within 0\.2 s"):
        await run_command([sys.executable, "-c", OPENS], within=0.2)
