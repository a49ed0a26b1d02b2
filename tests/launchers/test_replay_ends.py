"""A rank that failed at step 37, replayed under a debugger and in the console: the same end."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from tests.launchers.launching import STARTS, line, terminated, typed_into, value_in
from tests.real.driving import joined
from tests.replay_score.rounds import FILE, Place
from tests.replay_score.rows import FAILURES, Failure, Program
from tests.support.clients.consoles import PipedConsole
from tests.support.combinations import rest
from tests.support.processes.commands import User, listed

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(400)]
SEED: Final = 1
WAYS: Final = [failure.way for failure in FAILURES]


async def failed(user: User, failure: Failure) -> tuple[Place, str, int]:
    """Take the rank that fails; return the job, what it said, and the line of the end."""
    place = Place(user, SEED)
    done = await place.run(Program("fails", (failure.way,)), failure.way, rank=2)
    return place, done.err + done.out, line(place.folder / "fails.py", failure.line)


@pytest.mark.parametrize(
    "failure", [each if each.way == "nan" else rest(each) for each in FAILURES], ids=WAYS
)
async def test_the_debugger_stands_where_the_rank_failed(user: User, failure: Failure) -> None:
    place, said, at = await failed(user, failure)
    run = await place.start("replay", FILE)
    client = await joined(run, {str(place.folder / "fails.py"): []}, timeout=STARTS)
    (row,) = await listed(client, "line", at, within=STARTS)
    value = partial(value_in, client, row["threadId"])
    assert await value("step") == "37"
    found = await client.request("exceptionInfo", {"threadId": row["threadId"]}, timeout=STARTS)
    assert failure.says in f"{found['exceptionId']}: {found['description']}"
    if failure.way == "exception":
        assert (await value("float(loss.detach()).hex()")).strip("'") in said
    if failure.way == "nan":
        assert await value("points.isnan().nonzero().tolist()") == "[[3, 2]]"
    await terminated(run, client)


@pytest.mark.rest
@pytest.mark.parametrize("failure", FAILURES, ids=WAYS)
async def test_the_console_shows_where_the_rank_failed(user: User, failure: Failure) -> None:
    place, _, at = await failed(user, failure)
    run = await place.start("replay", "--console", FILE, start=typed_into)
    console = PipedConsole(run)
    console.type("wait all stopped 60", "c", "wait all running 20", "wait all stopped 60", "p step")
    assert f"stopped at fails.py:{at} " in await console.until(f"fails.py:{at} ")
    await console.sees("37")
    await console.sees(failure.says.partition(": ")[2] or failure.says)
    console.type("quit")
    assert (await run.ends(within=STARTS)).code
