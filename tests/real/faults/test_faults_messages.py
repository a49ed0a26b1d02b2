"""Rows of the fault table: messages that are too long, out of order, twice, or of nobody's asking.

Each time there are four ranks, and the other three step on.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from dap_mux.client import ConnectionLost, DapClient
from dap_mux.engine import Settings
from tests.real.driving import COUNT, COUNTING, Driver, StartRanks, driving, script
from tests.real.faults.test_ranks_come_and_go import steps_on
from tests.support.fake_rank import server as fake_server
from tests.support.fake_rank.program import FIRST
from tests.support.fake_rank.rank import FakeRank
from tests.support.processes.commands import line_of
from tests.support.processes.ranks import Rank
from tests.support.processes.waiting import until
from tests.support.session import session

pytestmark = [pytest.mark.real, pytest.mark.heavy, pytest.mark.slow, pytest.mark.timeout(120)]
Json = dict[str, Any]
MB: Final = 1_000_000
LIMIT: Final = 30.0
SETTINGS: Final = Settings(backoff_first=0.1, backoff_most=0.5)


@pytest.fixture
async def ranks(start_ranks: StartRanks, done: Path) -> list[Rank]:
    return await start_ranks(4, COUNTING, arguments=[str(done)])


@pytest.fixture
async def four(ranks: list[Rank], done: Path) -> AsyncIterator[Driver]:
    """A client of four stopped ranks, which end well afterwards."""
    async with driving(ranks, {COUNTING: [COUNT]}, settings=SETTINGS) as driver:
        await driver.stopped(COUNT, within=LIMIT)
        yield driver
        await driver.ends_well(ranks, done)


async def evaluate(client: DapClient, expression: str, **more: object) -> Json:
    """Evaluate, with the patience that megabytes need; return the whole response."""
    arguments = {"expression": expression, "context": "watch", **more}
    return await asyncio.wait_for(client.send("evaluate", arguments), LIMIT)


async def test_long_messages(four: Driver) -> None:
    """10 MB from a rank and to it, which both arrive, and 17 MB from a client.

    They close that client only; the other clients do not notice.
    """
    await four.look(3)
    answer = await evaluate(four.client, f"'x' * {10 * MB}")
    assert len(answer["body"]["result"]) == 10 * MB
    await steps_on(four, 0, [0, 1, 2, 3])
    await four.look(3)
    answer = await evaluate(four.client, f"len('{'x' * (10 * MB)}')")
    assert answer["body"]["result"] == str(10 * MB)
    await steps_on(four, 0, [0, 1, 2, 3])
    other = await Driver.attach(four.session)
    with pytest.raises(ConnectionLost):
        await evaluate(other.client, "x" * (17 * MB))
    await steps_on(four, 0, [0, 1, 2, 3])


async def test_17_mb_from_a_rank(ranks: list[Rank], four: Driver) -> None:
    """More than debugpy's limit: its adapter never says a word again (measured).

    Nobody else notices. Only the adapter's end helps: the request fails, the rank runs on, and
    is attached again.
    """
    await four.look(3)
    asked = four.client.send("evaluate", {"expression": f"'x' * {17 * MB}", "context": "watch"})
    await steps_on(four, 0, [0, 1, 2])
    await steps_on(four, 0, [0, 1, 2])
    assert not asked.done()
    os.kill(ranks[3].adapter, signal.SIGKILL)
    assert not (await asyncio.wait_for(asked, LIMIT))["success"]
    await four.until(lambda e: e[3]["state"] == "lost", within=LIMIT, what="rank 3 is lost")
    await four.until(lambda e: e[3]["line"] == COUNT, within=LIMIT, what="it is back")
    await steps_on(four, 0, [0, 1, 2, 3])


async def test_a_step_that_waits_as_the_connection_ends(
    ranks: list[Rank], four: Driver, tmp_path: Path
) -> None:
    """It is not done after the rank has been attached again, and stopped at a breakpoint."""
    begun, end = tmp_path / "begun", tmp_path / "end"
    wait = f"while not __import__('os').path.exists({str(end)!r}): __import__('time').sleep(0.01)"
    busy = f"open({str(begun)!r}, 'w').close()\n{wait}"
    frame = (await four.frames(3, levels=1))[0]["id"]
    asked = four.client.send("evaluate", {"expression": busy, "context": "repl", "frameId": frame})
    await until(begun.exists, within=LIMIT, what="the evaluation has begun")
    four.client.send("next", {"threadId": four.row(3), "singleThread": True})
    await four.until(lambda e: e[3]["state"] == "running", within=LIMIT, what="rank 3 is to step")
    after = {"ranks": "3", "command": "p 1"}  # the rank hears of it after the step
    assert (await four.client.request("cast", after, timeout=LIMIT))["results"]
    os.kill(ranks[3].adapter, signal.SIGKILL)
    await four.until(lambda e: e[3]["state"] == "lost", within=LIMIT, what="rank 3 is lost")
    end.touch()
    assert not (await asyncio.wait_for(asked, LIMIT))["success"]
    await four.until(lambda e: e[3]["state"] == "stopped", within=LIMIT, what="it is back")
    entry = (await four.entries())[3]
    assert (entry["line"], entry["reason"]) == (COUNT, "breakpoint")
    await steps_on(four, 3, [3])


async def test_a_client_is_gone_and_comes_back(four: Driver) -> None:
    """Without a word, while all are stopped: they run on, and stop for it again when it is back."""
    running = four.session
    other = await Driver.attach(running, breakpoints={COUNTING: [COUNT]})
    four.client._writer.transport.abort()
    await until(lambda: len(running.engine.core.clients) == 1, within=LIMIT, what="it is gone")
    await steps_on(other, 0, [0, 1, 2, 3])  # the ranks are the other's now
    other.client._writer.transport.abort()
    await until(lambda: not running.engine.core.clients, within=LIMIT, what="both are gone")
    again = await Driver.attach(running, breakpoints={COUNTING: [COUNT]})
    await again.stopped(COUNT, within=LIMIT)
    four.client = again.client


def reversed_answers(said: list[Json]) -> list[Json]:
    """Answers in the wrong order; events stay where they are."""
    answers = [message for message in said if message["type"] == "response"]
    return [answers.pop() if message["type"] == "response" else message for message in said]


def twice(said: list[Json]) -> list[Json]:
    """Every answer twice."""
    return [each for one in said for each in ([one] * (2 if one["type"] == "response" else 1))]


def of_nobodys_asking(said: list[Json]) -> list[Json]:
    """An answer to a question that was never put, and one to another question than was."""
    lies = [
        {"request_seq": 4711, "command": "evaluate"},
        {"request_seq": 1, "command": "no such thing"},
    ]
    made_up = [{"seq": 1, "type": "response", "success": True, "body": {}, **lie} for lie in lies]
    return [each for one in said for each in (*made_up, one)]


async def test_replies_that_are_not_as_they_should_be(start_ranks: StartRanks, done: Path) -> None:
    """The answers that were asked for are found, the others are dropped."""
    twists = {3: reversed_answers, 4: twice, 5: of_nobodys_asking}
    fakes = {number: FakeRank(number) for number in twists}
    async with AsyncExitStack() as stack:
        ranks = await start_ranks(3, COUNTING, arguments=[str(done)])
        ports = [rank.port for rank in ranks]
        for number, fake in fakes.items():
            serving = fake_server.serving(fake, twists[number])
            ports.append(await stack.enter_async_context(serving))
        running = await stack.enter_async_context(session(ports, settings=SETTINGS))
        lines = {COUNTING: [COUNT], fakes[3].program.path: [FIRST]}
        driver = await Driver.attach(running, breakpoints=lines)
        await driver.until(lambda e: [one["line"] for one in e[:3]] == [COUNT] * 3, within=LIMIT)
        await driver.states(*["stopped"] * 6, within=LIMIT)
        assert all([await driver.value(number, "loss") for number in fakes])
        assert await driver.value(0, "count") == "0"
        await steps_on(driver, 0, [0, 1, 2])
        calls = {number: fake.program.calls for number, fake in fakes.items()}
        for number, fake in fakes.items():
            await driver.control("continue", number)
            ran_on = partial(ran_since, fake, calls[number])
            await until(ran_on, within=LIMIT, what=f"rank {number} runs on")
        await driver.states(*["stopped"] * 6, within=LIMIT)
        await driver.ends_well(ranks, done)


def ran_since(fake: FakeRank, calls: int) -> bool:
    return fake.program.calls > calls


async def test_a_rank_that_holds_its_gil_in_c(start_ranks: StartRanks, done: Path) -> None:
    """Its debugger cannot answer either: named in merged answers, never taken for dead."""
    program = script("hang_one")
    count = line_of(program, "count")
    ranks = await start_ranks(4, program, wait=False, arguments=[str(done), "with the GIL"])
    async with driving(ranks) as driver:
        await driver.until(lambda e: all(e[rank]["state"] == "running" for rank in (0, 1, 3)))
        await until(lambda: "hangs" in ranks[2].output, within=LIMIT, what="rank 2 hangs")
        wanted = {"source": {"path": program}, "breakpoints": [{"line": count}]}
        (answer,) = (await driver.client.request("setBreakpoints", wanted, timeout=LIMIT))[
            "breakpoints"
        ]
        assert answer["verified"]
        assert "rank 2" in answer["message"]
        await driver.until(lambda e: [one["line"] for one in e] == [count, count, None, count])
        await steps_on(driver, 0, [0, 1, 3])
        assert (await driver.entries())[2]["state"] in ("running", "connecting")
        await driver.ends_well(ranks, done)
