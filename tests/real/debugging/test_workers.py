"""Processes that ranks start: left alone by default, debugged as `rank 3 / worker 1` on request."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import pytest

from dap_mux.client import Json
from dap_mux.engine.ranks.connector import Connector
from dap_mux.engine.state.phases import Phase
from tests.real.driving import Driver, StartRanks, driving, script
from tests.real.ranks.agents import Start
from tests.support.processes.commands import line_of
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until
from tests.support.session import Session, session

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.timeout(180)]
WORKERS: Final = script("workers")
NESTED: Final = script("nested")
WORK: Final = line_of(WORKERS, "work")
ENDED: Final = "children ended with [11, 12, 13, 14, 15, 16, 7]"
PATIENCE: Final = 30.0  # s; a limit: children that meet a debugger take a second each
# A rank where the private part of pydevd that keeps children from the debugger is another one.
CHANGED: Final = """\
import runpy, sys
from _pydev_bundle import pydev_monkey
class Yes:
    def __call__(self):
        return True
pydev_monkey._get_apply_arg_patching = Yes()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Job:
    """Ranks of `workers.py`: their children start at a word of ours, and end at another."""

    def __init__(self, start: StartRanks, folder: Path) -> None:
        self._start = start
        self._begin, self._end = folder / "begin", folder / "end"
        self._changed = folder / "changed.py"
        self.ranks: list[Rank] = []

    async def start(self, count: int = 1, *, changed: bool = False) -> list[int]:
        """Start the ranks; return their ports."""
        words = [WORKERS, str(self._begin), str(self._end)]
        if changed:
            self._changed.write_text(CHANGED)
            words.insert(0, str(self._changed))
        self.ranks = await self._start(count, words[0], wait=False, arguments=words[1:])
        return [rank.port for rank in self.ranks]

    def begin(self) -> None:
        """The children may be started."""
        self._begin.touch()

    def end(self) -> None:
        """They may end."""
        self._end.touch()

    async def ended_well(self) -> None:
        """Every rank ends by itself, and so did its children."""
        self.begin()
        self.end()
        for rank in self.ranks:
            assert await rank.ended(within=PATIENCE) == 0, rank.output
            assert ENDED in rank.output


@pytest.fixture
def job(start_ranks: StartRanks, tmp_path: Path) -> Job:
    return Job(start_ranks, tmp_path)


def workers(entries: list[Json]) -> list[Json]:
    return [entry for entry in entries if entry["worker"] is not None]


def pids(entries: list[Json]) -> dict[int, int]:
    return {entry["worker"]: entry["pid"] for entry in workers(entries)}


def at_work(count: int) -> Callable[[list[Json]], bool]:
    """So many workers are stopped where they work."""
    return lambda entries: [e["line"] for e in workers(entries)] == [WORK] * count


async def names(driver: Driver) -> list[str]:
    return [row["name"] for row in (await driver.client.request("threads"))["threads"]]


async def at_their_work(running: Session, job: Job) -> tuple[Driver, list[Json]]:
    """A client of a session whose workers have all come to their breakpoint; and `list`."""
    driver = await Driver.attach(running, breakpoints={WORKERS: [WORK]}, subProcess=True)
    await driver.live(len(job.ranks))
    job.begin()
    count = 6 * len(job.ranks)
    entries = await driver.until(at_work(count), within=2 * PATIENCE, what=f"{count} at work")
    await is_told(driver)
    return driver, entries


async def is_told(driver: Driver) -> None:
    """Wait until the user has been shown a stop: `list` knows of it before, their rank runs on."""
    await driver.client.wait_for(lambda: bool(driver.stops), timeout=PATIENCE, what="a stop")


async def go_on(driver: Driver) -> None:
    """Let everybody run on, from the row that the user is at."""
    await is_told(driver)
    row = {"threadId": driver.focus}
    frames = (await driver.client.request("stackTrace", row))["stackFrames"]
    await driver.client.request("scopes", {"frameId": frames[0]["id"]})
    await driver.client.request("continue", row)


class TestTheyAreLeftAlone:
    @pytest.mark.parametrize("changed", [False, True], ids=["", "trick-fails"])
    @pytest.mark.parametrize("left", [False, True], ids=["attached", "left"])
    async def test_by_default(self, job: Job, changed: bool, left: bool) -> None:
        async with driving(await job.start(changed=changed), {WORKERS: [WORK]}, live=1) as driver:
            if left:
                await driver.leave()
                await released(driver.session)
            await job.ended_well()
            if not left:
                await driver.client.wait_event("terminated", timeout=PATIENCE)
                assert driver.events("stopped") == []

    async def test_after_a_session_that_debugged_them(self, job: Job) -> None:
        async with driving(await job.start(), subProcess=True, live=1) as driver:
            await driver.leave()
            await released(driver.session)
            await job.ended_well()

    async def test_when_a_session_that_debugged_them_is_killed(
        self, job: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody answers for a child: debugpy's adapter lets it go by itself."""
        async with session(await job.start()) as running:
            await (await Driver.attach(running, subProcess=True)).live()
            monkeypatch.setattr(Connector, "connect", lambda connector, rank: None)
            # an adapter does not survive that while its rank evaluates (docs/faults.md)
            await until(lambda: not evaluating(running), within=PATIENCE, what="all is answered")
            for link in list(running.driver._links.values()):
                assert link._transport is not None
                link._transport.abort()
            await job.ended_well()


def evaluating(running: Session) -> bool:
    """Whether a rank owes the answer to an `evaluate`."""
    ranks = running.engine.core.ranks.values()
    return any(
        one.command == "evaluate" for rank in ranks for one in rank.connection.pending.values()
    )


async def released(running: Session) -> None:
    rank = running.engine.core.ranks["job", 0]
    await until(lambda: rank.phase is Phase.IDLE, within=PATIENCE, what="left")


class TestTheyAreDebugged:
    async def test_four_ranks(self, job: Job) -> None:
        """A breakpoint in a worker, a step and a value there, and on to the end of the job."""
        async with session(await job.start(4)) as running:
            driver, entries = await at_their_work(running, job)
            assert [entry["worker"] for entry in entries] == [None, 1, 2, 3, 4, 5, 6] * 4
            assert await names(driver) == [
                f"rank {rank}" + (f" / worker {worker}" if worker else "")
                for rank in range(4)
                for worker in range(7)
            ]
            rows = {entry["threadId"]: entry for entry in entries}
            assert rows[driver.focus]["worker"] is not None
            (worker,) = (e for e in entries if (e["rank"], e["worker"]) == (3, 1))
            await self.step_and_look(driver, {"threadId": worker["threadId"]})
            await go_on(driver)
            await driver.until(lambda es: {e["state"] for e in es} == {"running"}, within=PATIENCE)
            await job.ended_well()
            await driver.client.wait_event("terminated", timeout=PATIENCE)

    async def step_and_look(self, driver: Driver, row: Json) -> None:
        """The other workers stay where they are."""
        await driver.client.request("next", {**row, "singleThread": True})
        await driver.until(
            lambda entries: (
                sorted(e["line"] for e in workers(entries) if e["line"]) == [WORK] * 23 + [WORK + 1]
            ),
            within=PATIENCE,
            what="a step of one worker",
        )
        frames = (await driver.client.request("stackTrace", row))["stackFrames"]
        asked = {"expression": "(mine, result)", "frameId": frames[0]["id"], "context": "watch"}
        told = (await driver.client.request("evaluate", asked))["result"]
        mine, result = map(int, re.findall(r"\d+", told))
        assert result == mine + 1

    async def test_one_rank(self, job: Job) -> None:
        """Its rows are those of debugpy; a worker's are named after it, and go with it."""
        async with session(await job.start()) as running:
            driver, entries = await at_their_work(running, job)
            shown = await names(driver)
            assert shown[0] == "MainThread"
            assert [n for n in shown if "/" not in n][1:] == [f"worker {n}" for n in range(1, 7)]
            rows = {entry["threadId"] for entry in workers(entries)}
            await go_on(driver)
            job.end()
            await driver.until(lambda entries: not workers(entries), within=PATIENCE)
            await job.ended_well()
            await driver.client.wait_event("terminated", timeout=PATIENCE)
            told = driver.events("thread")
            assert rows <= {body["threadId"] for body in told if body["reason"] == "started"}
            assert rows <= {body["threadId"] for body in told if body["reason"] == "exited"}

    async def test_killed_while_stopped(self, job: Job) -> None:
        """Its row goes; its rank, who waits for it, finds it killed, and nobody else does."""
        async with session(await job.start()) as running:
            driver, entries = await at_their_work(running, job)
            victim = workers(entries)[1]
            os.kill(victim["pid"], signal.SIGKILL)
            left = await driver.until(at_work(5), within=PATIENCE)
            assert victim["worker"] not in pids(left)
            gone = {"reason": "exited", "threadId": victim["threadId"]}
            await driver.client.wait_event("thread", lambda body: body == gone, timeout=PATIENCE)
            await go_on(driver)
            job.end()
            assert await job.ranks[0].ended(within=PATIENCE) == 1
            assert job.ranks[0].output.count("-9") == 1

    async def test_the_client_leaves_while_they_are_stopped(self, job: Job) -> None:
        async with session(await job.start(2)) as running:
            driver, _ = await at_their_work(running, job)
            await driver.leave()
            await job.ended_well()

    async def test_the_next_client_finds_them_again(self, job: Job) -> None:
        """Under the numbers that they have had."""
        async with session(await job.start()) as running:
            driver, before = await at_their_work(running, job)
            await driver.leave()
            await released(running)
            again = await Driver.attach(running, subProcess=True)
            after = await again.until(
                lambda es: [e["state"] for e in workers(es)] == ["running"] * 6, within=PATIENCE
            )
            assert pids(before) == pids(after)
            with anyio.fail_after(PATIENCE):
                while "MainThread" not in await names(again):  # theirs may be told before
                    pass
            await again.control("pause")
            await again.until(
                lambda es: {e["state"] for e in workers(es)} == {"stopped"}, within=PATIENCE
            )  # their rank is blocked in C until they end
            await go_on(again)
            await job.ended_well()

    async def test_released_with_their_rank(self, job: Job) -> None:
        async with session(await job.start()) as running:
            driver, _ = await at_their_work(running, job)
            await driver.client.request("release", {"ranks": "0"})
            await job.ended_well()

    async def test_under_our_own_agent(self, start: Start, tmp_path: Path) -> None:
        """It keeps children from the debugger by itself, until somebody wants them there."""
        begin, end = tmp_path / "begin", tmp_path / "end"
        agent = await start("--no-wait", WORKERS, str(begin), str(end))
        async with driving([agent.record["port"]], {WORKERS: [WORK]}, subProcess=True) as driver:
            await driver.live()
            begin.touch()
            await driver.until(at_work(6), within=2 * PATIENCE)
            await go_on(driver)
            end.touch()
            assert await agent.ends() == 0
            assert ENDED in agent.text()

    async def test_children_of_children(self, start_ranks: StartRanks, tmp_path: Path) -> None:
        """They are workers of the same rank, and everybody ends well."""
        line = line_of(NESTED, "innermost")
        (rank,) = await start_ranks(1, NESTED, wait=True)
        async with driving([rank.port], {NESTED: [line]}, subProcess=True) as driver:
            entries = await driver.until(
                lambda entries: [e["line"] for e in workers(entries)] == [None, line],
                within=PATIENCE,
            )
            assert [entry["worker"] for entry in entries] == [None, 1, 2]
            await go_on(driver)
            assert await rank.ended(within=PATIENCE) == 0, rank.output
