"""Ranks that are absent, late, killed, hung, held by somebody else, or no ranks at all.

The others never notice: they stop, step and answer as ever. How soon what is told is decided on the
clock of the scripted tests: `test_ranks.py`, `test_breakpoints.py`, `test_requests.py` there.
"""

from __future__ import annotations

import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest

from dap_mux.client import DapClient, Json
from dap_mux.engine import Settings
from tests.conftest import Connect
from tests.real.driving import (
    COUNT,
    COUNTING,
    Driver,
    StartRanks,
    driving,
    ends_well,
    let_end,
    script,
)
from tests.support.fake_rank import bad_ranks
from tests.support.processes import proc_net
from tests.support.processes.commands import LIMIT, line_of
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until
from tests.support.session import session

pytestmark = pytest.mark.real
# Tries again and again; what opens its port is not ready yet, and says when it is.
EAGER: Final = Settings(backoff_first=0.1, backoff_most=0.5, greeting_timeout=LIMIT)
# Who is given up is silent on purpose: a slow machine must not make others look so.
GIVEN_UP: Final = 3.0  # s
GIVES_UP: Final = Settings(
    backoff_first=0.1, backoff_most=0.5, request_timeout=GIVEN_UP, breakpoint_timeout=GIVEN_UP
)


BAD: Final = (
    bad_ranks.Silent,
    bad_ranks.Garbage,
    bad_ranks.NotJson,
    bad_ranks.WrongShapes,
    bad_ranks.CutShort,
    bad_ranks.Huge,
)


async def four(start_ranks: StartRanks, done: Path) -> list[Rank]:
    return await start_ranks(4, COUNTING, arguments=[str(done)])


async def steps_on(driver: Driver, focus: int, ranks: list[int]) -> None:
    """A step of the focus takes all of `ranks` one line on."""
    before = {entry["rank"]: entry["line"] for entry in await driver.entries()}
    await driver.look(focus)
    await driver.control("next")

    def arrived(entries: list[Json]) -> bool:
        lines = [entry["line"] for entry in entries if entry["rank"] in ranks]
        return len(set(lines)) == 1 and lines[0] not in (None, before[focus])

    await driver.until(arrived, what=f"ranks {ranks} stepped")


async def test_a_rank_that_is_not_up_yet(start_ranks: StartRanks, done: Path) -> None:
    """It is waited for, and has its breakpoints before its first line runs."""
    first = proc_net.free_ports(2)
    (here,) = await start_ranks(1, COUNTING, base_port=first, arguments=[str(done)])
    # Connected to as soon as its port is open, it may not be attached to at once.
    async with driving(
        [first, first + 1], {COUNTING: [COUNT]}, settings=EAGER, ready=False
    ) as driver:
        entries = await driver.states("stopped", "waiting")
        assert "nothing listens" in entries[1]["reason"]
        await steps_on(driver, 0, [0])
        (late,) = await start_ranks(1, COUNTING, base_port=first + 1, arguments=[str(done)])
        await driver.until(lambda entries: entries[1]["line"] == COUNT, what="late rank stopped")
        assert driver.events("thread")[-1] == {"reason": "started", "threadId": driver.row(1)}
        assert await driver.value(1, "count") == "0"
        await driver.ends_well((here, late), done)


@pytest.mark.quick
async def test_killed_while_stopped(start_ranks: StartRanks, done: Path) -> None:
    """Where it is the focused rank, its class' lowest rank is shown instead."""
    ranks = await four(start_ranks, done)
    async with driving(ranks, {COUNTING: [COUNT]}, stopped=COUNT) as driver:
        ranks[2].kill()
        gone = {"reason": "exited", "threadId": driver.row(2)}
        await driver.client.wait_event("thread", lambda body: body == gone, timeout=LIMIT)
        threads = (await driver.client.request("threads"))["threads"]
        assert [thread["name"] for thread in threads] == ["rank 0", "rank 1", "rank 3"]
        await steps_on(driver, 0, [0, 1, 3])
        await driver.states("stopped", "stopped", "exited", "stopped")
        assert not driver.events("terminated")

        await driver.value(3, "count")
        ranks[3].kill()
        gone = {"reason": "exited", "threadId": driver.row(3)}
        await driver.client.wait_event("thread", lambda body: body == gone, timeout=LIMIT)
        client = driver.client
        await client.wait_for(lambda: bool(stops_after(client, gone)), timeout=LIMIT)
        assert stops_after(client, gone)[0]["threadId"] == driver.row(0)


def stops_after(client: DapClient, gone: Json) -> list[Json]:
    """What has stopped since that thread was gone; late news of those before it do not count."""
    bodies = [event.get("body") for event in client.events]
    behind = client.events[bodies.index(gone) :]
    return [event["body"] for event in behind if event["event"] == "stopped"]


async def test_killed_while_running(start_ranks: StartRanks, done: Path) -> None:
    ranks = await four(start_ranks, done)
    async with driving(ranks, live=4) as driver:
        ranks[0].kill()
        await driver.states("exited", "running", "running", "running")
        await driver.control("pause", 1)
        await driver.states("exited", "stopped", "stopped", "stopped")
        pid = "__import__('os').getpid()"  # wherever it was: maybe before its first line
        assert int(await driver.value(2, pid)) == ranks[2].pid
        await driver.control("continue", 2)
        await ends_well(ranks[1:], done)
        await driver.client.wait_event("terminated")


async def test_an_adapter_is_killed(start_ranks: StartRanks, done: Path) -> None:
    """The rank runs on and starts another one: lost, not exited, until it is attached again."""
    ranks = await four(start_ranks, done)
    async with driving(ranks, {COUNTING: [COUNT]}, settings=EAGER, stopped=COUNT) as driver:
        os.kill(ranks[1].adapter, signal.SIGKILL)
        entries = await driver.states("stopped", "lost", "stopped", "stopped")
        assert entries[1]["reason"]
        await steps_on(driver, 0, [0, 2, 3])
        await driver.until(lambda e: e[1]["line"] == COUNT, what="attached again")
        await driver.ends_well(ranks, done)


@pytest.mark.heavy
async def test_an_adapter_is_killed_and_then_the_program_ends(
    start_ranks: StartRanks, done: Path
) -> None:
    """Nobody is left to say so: it is seen on this machine, and the session does not wait on."""
    ranks = await four(start_ranks, done)
    async with driving(ranks, settings=EAGER) as driver:
        await driver.states(*["running"] * 4)
        os.kill(ranks[1].adapter, signal.SIGKILL)
        await driver.states("running", "lost", "running", "running")
        ranks[1].kill()
        await driver.states("running", "exited", "running", "running")
        let_end(done)
        await driver.client.wait_event("terminated", timeout=LIMIT)


@pytest.mark.heavy
async def test_no_ranks_at_all(start_ranks: StartRanks, done: Path) -> None:
    """One rank among six servers that are none, each bad in its own way."""
    (good,) = await start_ranks(1, COUNTING, arguments=[str(done)])
    async with AsyncExitStack() as stack:
        bad = [kind() for kind in BAD]
        bad_ports = [await stack.enter_async_context(bad_ranks.serving(one)) for one in bad]
        running = await stack.enter_async_context(
            session([good.port, *bad_ports], settings=GIVES_UP)
        )
        driver = await Driver.attach(running, breakpoints={COUNTING: [COUNT]})
        await driver.until(lambda entries: entries[0]["line"] == COUNT)
        await until(lambda: all(one.met for one in bad), within=LIMIT, what="all are met")
        await steps_on(driver, 0, [0])
        entries = await driver.entries()
        assert {entry["state"] for entry in entries[1:]} <= {"waiting", "connecting"}
        wanted = {"source": {"path": COUNTING}, "breakpoints": [{"line": COUNT}]}
        (breakpoint,) = (await driver.client.request("setBreakpoints", wanted))["breakpoints"]
        assert breakpoint["verified"]
        assert breakpoint["message"] == "ranks 1-6: not attached yet"
        await driver.ends_well([good], done)


async def test_already_being_debugged(
    start_ranks: StartRanks, connect: Connect, done: Path
) -> None:
    """Another debugger holds a rank: `list` says so, and it is attached when that one leaves."""
    ranks = await start_ranks(2, COUNTING, wait=False, arguments=[str(done)])
    other = await connect(ranks[1].port, strict=False)
    await other.handshake({"justMyCode": False})
    async with driving(ranks, settings=EAGER) as driver:
        one = driver.session.engine.core.ranks["job", 1]

        def is_told(entries: list[Json]) -> bool:
            """Between two tries, which is not always so."""
            waits = [entry["state"] for entry in entries] == ["running", "waiting"]
            why = entries[1]["reason"] or ""
            return waits and one.phase.state == "waiting" and "already being debugged" in why

        await driver.until(is_told, what="it is held by another")
        await other.disconnect()
        await driver.live(2)
        await driver.control("pause")
        await driver.states("stopped", "stopped")
        await driver.ends_well(ranks, done)


@pytest.mark.heavy
async def test_a_rank_that_is_silent(start_ranks: StartRanks, done: Path) -> None:
    """SIGSTOP: a merged answer comes in time and names it; what it owes comes when it can."""
    ranks = await four(start_ranks, done)
    async with driving(ranks, settings=GIVES_UP, live=4) as driver:
        ranks[3].kill(signal.SIGSTOP)
        wanted = {"source": {"path": COUNTING}, "breakpoints": [{"line": COUNT}]}
        answer = await driver.client.request("setBreakpoints", wanted, timeout=LIMIT)
        (breakpoint,) = answer["breakpoints"]
        assert breakpoint["verified"]
        assert breakpoint["message"].startswith("rank 3: no")
        entries = await driver.until(
            lambda entries: [entry["line"] for entry in entries] == [COUNT] * 3 + [None]
        )
        assert entries[3]["state"] == "running"
        await steps_on(driver, 0, [0, 1, 2])
        ranks[3].kill(signal.SIGCONT)
        await driver.until(lambda entries: entries[3]["line"] == COUNT)
        await driver.ends_well(ranks, done)


async def innermost(driver: Driver, rank: int) -> str:
    """Where the main thread of a running rank is: its file and line."""
    main = "__import__('threading').main_thread().ident"
    frame = f"__import__('sys')._current_frames()[{main}]"
    command = f"p (lambda f: (f.f_code.co_filename, f.f_lineno))({frame})"
    cast = await driver.client.request("cast", {"ranks": str(rank), "command": command})
    return "; ".join(str(one["value"]).strip("()") for one in cast["results"])


async def test_a_rank_hung_in_c(start_ranks: StartRanks, done: Path, tmp_path: Path) -> None:
    """`pause` is answered, and it is shown as pausing until its call returns."""
    program = script("hang_one")
    hung, count = line_of(program, "hang"), line_of(program, "count")
    ranks = await start_ranks(4, program, arguments=[str(done)])
    async with driving(ranks, {program: [count]}) as driver:
        await driver.until(lambda e: [one["line"] for one in e] == [count, count, None, count])
        while await innermost(driver, 2) != f"'{program}', {hung}":
            pass  # it has not come to its call yet
        await driver.client.request("setBreakpoints", {"source": {"path": program}})
        await driver.look(0)
        await driver.control("continue")
        await driver.states(*["running"] * 4)
        await driver.control("pause")  # before the call returns, which waits for `let_end`
        await driver.states("stopped", "stopped", "pausing", "stopped")
        await driver.until(lambda entries: entries[0]["line"])
        await steps_on(driver, 0, [0])  # on which lines they were paused is anybody's guess
        assert (await driver.entries())[2]["state"] == "pausing"
        let_end(done)
        await driver.until(lambda entries: entries[2]["line"] in (hung, hung + 1))
        await driver.leave()
        assert [await rank.ended() for rank in ranks] == [0] * 4
